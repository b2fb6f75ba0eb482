package assemble

import (
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/config"
	"github.com/pawl-go/pawl/store"
)

// EmbedFlags name the embedding model.
type EmbedFlags struct {
	Embed    string `group:"store" placeholder:"PROVIDER:MODEL" help:"@embed_embed"`
	EmbedURL string `group:"store" name:"embed-url" placeholder:"URL" help:"@embed_embedurl"`
}

// StoreFlags say where the database is, and for which tenant and user.
type StoreFlags struct {
	DB     string `group:"store" name:"db" placeholder:"FILE" help:"@store_db"`
	Tenant string `group:"store" placeholder:"NAME" help:"@store_tenant"`
	User   string `group:"store" placeholder:"NAME" help:"@store_user"`
}

func (f *StoreFlags) store() config.Store {
	return config.Store{DB: f.DB, Tenant: f.Tenant, User: f.User}
}

// Scope returns the tenant and the user of the flags.
func (f *StoreFlags) Scope() store.Scope { return f.store().Scope() }

// Open opens the database. The caller closes it.
func (f *StoreFlags) Open(sys *cli.System, create bool) (*config.Database, store.Store, error) {
	d := config.NewDatabase(f.store(), sys.Env, create)
	db, err := d.Open()
	if err != nil {
		return nil, nil, Misconfigured(err)
	}
	return d, db, nil
}

// SharedFlag widens a search of documents.
type SharedFlag struct {
	Shared bool `group:"store" help:"@shared_flag_shared"`
}
