package viewer_test

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/viewer"
)

func get(t *testing.T, method, path string) *httptest.ResponseRecorder {
	t.Helper()
	rec := httptest.NewRecorder()
	viewer.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), method, path, nil))
	return rec
}

// Each file is served with its type and with a policy that permits only the pages' own scripts.
// Other paths are not found.
func TestHandler(t *testing.T) {
	for path, want := range map[string]struct {
		status int
		kind   string
	}{
		"/": {200, "text/html; charset=utf-8"}, "/index.html": {200, "text/html; charset=utf-8"}, "/js/app.js": {200, "text/javascript; charset=utf-8"}, "/css/base.css": {200, "text/css; charset=utf-8"},
		"/icon.svg": {200, "image/svg+xml"}, "/vendor/htm-preact.js": {200, "text/javascript; charset=utf-8"},
		"/none": {404, ""}, "/js": {404, ""}, "/js/": {404, ""}, "/../viewer.go": {404, ""}, "/js/..%2f..%2fviewer.go": {404, ""}, "/pages/index.html": {404, ""},
	} {
		rec := get(t, "GET", path)
		if rec.Code != want.status || want.kind != "" && rec.Header().Get("Content-Type") != want.kind {
			t.Errorf("%s: %d %s", path, rec.Code, rec.Header().Get("Content-Type"))
		}
		policy := rec.Header().Get("Content-Security-Policy")
		for _, rule := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src 'self' data:", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
			"require-trusted-types-for 'script'", "trusted-types 'none'"} {
			if !strings.Contains(policy+";", rule+";") {
				t.Errorf("%s: the policy has no %q: %s", path, rule, policy)
			}
		}
		if strings.Contains(policy, "unsafe") || rec.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, rec.Header())
		}
	}
	if rec := get(t, http.MethodHead, "/"); rec.Code != 200 || rec.Header().Get("Content-Length") == "" {
		t.Errorf("HEAD: %d %v", rec.Code, rec.Header())
	}
}

// The files need nothing from other servers, and contain no way by which text could become markup
// or code.
func TestFiles(t *testing.T) {
	refused := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerouslySetInnerHTML|createContextualFragment|DOMParser|srcdoc|\beval\(|new Function|setTimeout\("|javascript:|\son[a-z]+="|\sstyle="|<style|style=\$`)
	elsewhere := regexp.MustCompile(`(https?:)?//[a-z0-9.-]+\.[a-z]{2,}`)
	imports := regexp.MustCompile(`from "([^"]+)"`)
	err := fs.WalkDir(os.DirFS("pages"), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(name, ".LICENSE") {
			return err
		}
		b, err := os.ReadFile("pages/" + name)
		if err != nil {
			return err
		}
		if get(t, "GET", "/"+name).Code != 200 {
			t.Errorf("%s is not served", name)
		}
		text := strings.ReplaceAll(string(b), `xmlns="http://www.w3.org/2000/svg"`, "")
		if s := elsewhere.FindString(text); s != "" && !strings.HasPrefix(name, "vendor/") {
			t.Errorf("%s names %s", name, s)
		}
		if s := refused.FindString(text); s != "" && !strings.HasPrefix(name, "vendor/") {
			t.Errorf("%s has %q", name, s)
		}
		for _, m := range imports.FindAllStringSubmatch(text, -1) {
			if get(t, "GET", "/"+path.Join(path.Dir(name), m[1])).Code != 200 {
				t.Errorf("%s imports %s, which is not there", name, m[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// package/preact/standalone.module.js of htm 3.1.1
	b, err := os.ReadFile("pages/vendor/htm-preact.js")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b)
	if got := hex.EncodeToString(sum[:]); got != vendored {
		t.Errorf("the vendored file is not the one of the release: %s", got)
	}
}

const vendored = "72284e8e9079c87817145df1110f74e8a2aa040b2fc384922e18dfcb46fc1fd7"
