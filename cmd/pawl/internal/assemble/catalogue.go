package assemble

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/provider/catalog"
)

// catalogue.go: the facts about models that the commands use.

// Catalogue reads the catalogue at path. An empty path means the built-in one with the records of
// UserCatalogue over it. flag is the name of the flag, for the error.
func Catalogue(sys *cli.System, flag, path string) (*catalog.Catalog, error) {
	own := path == ""
	if own {
		path = UserCatalogue(sys)
	}
	if _, err := os.Stat(path); own && errors.Is(err, fs.ErrNotExist) {
		return catalog.Default(), nil
	}

	c, err := agentfile.ReadCatalog(path)
	findings := agentfile.FindingsOf(err)
	switch {
	// The person may not know that this file exists, so that the hint says how to live without it.
	case len(findings) > 0 && own:
		return nil, cli.Usage("pawl models update writes it again; without the file the built-in one is used",
			"%s: %s", path, findings[0].Message)
	case len(findings) > 0:
		return nil, cli.Usage(findings[0].Hint, "%s: %s", flag, findings[0].Message)
	case err != nil:
		return nil, err
	case own:
		return catalog.Default().Merge(c), nil
	}
	return c, nil
}

// UserCatalogue returns the file that pawl models update writes. It is next to the default
// database. Empty means that the user has no folder for data.
func UserCatalogue(sys *cli.System) string {
	db, err := agentfile.NewDatabase(agentfile.Store{}, sys.Env, false).Path()
	if err != nil {
		return ""
	}
	return filepath.Join(filepath.Dir(db), "models.json")
}

// BuildOptions returns the options for the agents of files that every command uses.
func BuildOptions(sys *cli.System) (*agentfile.Options, error) {
	known, err := Catalogue(sys, "", "")
	if err != nil {
		return nil, err
	}
	return &agentfile.Options{
		Getenv:  sys.Env,
		Notice:  sys.Notice,
		Catalog: known,
		Now:     sys.Now,
		Warned:  map[string]bool{},
	}, nil
}
