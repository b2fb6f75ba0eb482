// Package buildcache gives Go programs that tests compile in a sandbox a build cache that lasts. A
// sandbox has a private cache, for which the standard library would be compiled in each test:
//
//	cache := t.TempDir()
//	buildcache.Share(t, cache)
//	tools, err := sandbox.Go(cache)
package buildcache

import (
	"os"
	"path/filepath"
	"testing"
)

// Share makes the folder go of cache a link to a build cache of the user, and makes both where they
// are absent. Without a cache folder of the user, it does nothing.
func Share(t testing.TB, cache string) {
	t.Helper()
	user, err := os.UserCacheDir()
	if err != nil {
		return
	}

	shared := filepath.Join(user, "pawl", "sandbox-go")
	for _, dir := range []string{shared, cache} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(shared, filepath.Join(cache, "go")); err != nil {
		t.Fatal(err)
	}
}
