package assemble

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/durable/temporal"
)

// ClusterFlags select a Temporal cluster. They have the same environment variables as Temporal's
// own command.
type ClusterFlags struct {
	Address   string `placeholder:"HOST:PORT" help:"@cluster_address" rare:""`
	Namespace string `placeholder:"NAME" help:"@cluster_namespace" rare:""`
	Queue     string `name:"task-queue" placeholder:"NAME" help:"@cluster_queue" rare:""`
	Blobs     string `placeholder:"DIR" help:"@cluster_blobs" rare:""`
	TLS       bool   `name:"tls" help:"@cluster_tls" rare:""`
	TLSCA     string `name:"tls-ca" placeholder:"FILE" help:"@cluster_tlsca" rare:""`
	TLSCert   string `name:"tls-cert" placeholder:"FILE" help:"@cluster_tlscert" rare:""`
	TLSKey    string `name:"tls-key" placeholder:"FILE" help:"@cluster_tlskey" rare:""`
	TLSName   string `name:"tls-name" placeholder:"HOST" help:"@cluster_tlsname" rare:""`
	APIKeyEnv string `name:"api-key-env" placeholder:"NAME" help:"@cluster_apikeyenv" rare:""`
}

// EngineFlags select where runs are executed: in this process with a database, or on a Temporal
// cluster.
type EngineFlags struct {
	Engine string `enum:"local,temporal" default:"local" placeholder:"ENGINE" help:"@engine_engine"`
	ClusterFlags
}

// Away reports whether runs are executed on a cluster.
func (o *EngineFlags) Away() bool { return o.Engine == "temporal" }

// Check returns an error for flags that contradict each other. db is the database of a local run;
// nil means that the run is not stored.
func (o *EngineFlags) Check(db *StoreFlags) error {
	if o.Away() && db != nil && *db != (StoreFlags{}) {
		return cli.Usage("use --engine local, or leave these flags out",
			"--db, --tenant and --user belong to the database, and the run is on a cluster")
	}
	if !o.Away() && o.ClusterFlags != (ClusterFlags{}) {
		return cli.Usage("--engine temporal",
			"--address, --namespace, --task-queue, --blobs, --tls… and --api-key-env belong to a Temporal cluster")
	}
	return nil
}

// QueueOf returns the task queue of an agent.
func (f *ClusterFlags) QueueOf(agent string) string { return cmp.Or(f.Queue, "pawl."+agent) }

// Dial connects to the cluster. The caller closes the Client of the engine.
func (f *ClusterFlags) Dial(ctx context.Context, sys *cli.System) (*temporal.Engine, error) {
	c, err := f.cluster(sys)
	if err != nil {
		return nil, err
	}
	blobs, err := f.blobs(sys)
	if err != nil {
		return nil, err
	}

	// A person waits, who sees nothing until the cluster answers.
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	e, err := c.Dial(ctx, blobs)
	if err != nil {
		return nil, cli.Fail(cli.StatusFailed, Secrets(sys.Env, nil).Error(err),
			"set the address of the cluster with --address HOST:PORT; "+
				"docs/temporal.md shows how to start a server for a first try")
	}
	return e, nil
}

// cluster returns the settings of the flags, or of their environment variables.
func (f *ClusterFlags) cluster(sys *cli.System) (c temporal.Cluster, err error) {
	c.Address = cmp.Or(f.Address, sys.Env("TEMPORAL_ADDRESS"))
	if c.Address != "" && !strings.Contains(c.Address, ":") {
		return c, cli.Usage("--address "+c.Address+":7233", "--address %s: want a host and a port", c.Address)
	}
	c.Namespace = cmp.Or(f.Namespace, sys.Env("TEMPORAL_NAMESPACE"))
	name := cmp.Or(f.APIKeyEnv, "TEMPORAL_API_KEY")
	c.APIKey = sys.Env(name)
	if c.APIKey == "" && f.APIKeyEnv != "" {
		return c, cli.Usage("export "+f.APIKeyEnv+"=…", "--api-key-env: the variable %s is empty", f.APIKeyEnv)
	}

	c.Log = slog.New(slog.NewTextHandler(sys.Err, &slog.HandlerOptions{Level: slog.LevelError}))
	c.TLS, err = f.tls(sys)
	return c, err
}

// tls returns the TLS configuration. nil means no TLS.
func (f *ClusterFlags) tls(sys *cli.System) (*tls.Config, error) {
	ca := cmp.Or(f.TLSCA, sys.Env("TEMPORAL_TLS_SERVER_CA_CERT_PATH"))
	cert := cmp.Or(f.TLSCert, sys.Env("TEMPORAL_TLS_CLIENT_CERT_PATH"))
	key := cmp.Or(f.TLSKey, sys.Env("TEMPORAL_TLS_CLIENT_KEY_PATH"))
	name := cmp.Or(f.TLSName, sys.Env("TEMPORAL_TLS_SERVER_NAME"))
	wanted := f.TLS || !slices.Contains([]string{"", "false", "0"}, sys.Env("TEMPORAL_TLS"))
	// A certificate or a name without --tls means TLS too: to ignore it would send everything in
	// clear text.
	if !wanted && ca+cert+key+name == "" {
		return nil, nil
	}

	c := &tls.Config{ServerName: name, MinVersion: tls.VersionTLS12}
	if ca != "" {
		b, err := cli.ReadFile("--tls-ca", ca)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(b) {
			return nil, cli.Usage("a file with -----BEGIN CERTIFICATE-----", "--tls-ca: %s has no certificate", ca)
		}
	}

	if cert == "" && key == "" {
		return c, nil
	}
	if cert == "" || key == "" {
		return nil, cli.Usage("--tls-cert FILE --tls-key FILE",
			"mutual TLS needs a certificate and its key; only one of them is given")
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, cli.Usage("", "--tls-cert %s, --tls-key %s: %s", cert, key, cli.Plain(err))
	}
	c.Certificates = []tls.Certificate{pair}
	return c, nil
}

// blobs returns the folder for values that are too large for a history.
func (f *ClusterFlags) blobs(sys *cli.System) (temporal.Dir, error) {
	dir := cmp.Or(f.Blobs, sys.Env("PAWL_BLOBS"))
	if dir == "" {
		data := sys.Env("XDG_DATA_HOME")
		if !filepath.IsAbs(data) {
			home, err := os.UserHomeDir()
			if err != nil {
				return "", cli.Usage("--blobs DIR", "there is no home directory for the blobs: %v", err)
			}
			data = filepath.Join(home, ".local", "share")
		}
		dir = filepath.Join(data, "pawl", "blobs")
	}
	if s, err := os.Stat(dir); err == nil && !s.IsDir() {
		return "", cli.Usage("--blobs DIR", "--blobs: %s is not a folder", dir)
	}
	return temporal.Dir(dir), nil
}

// Command returns a command line for the same cluster, for hints.
func (f *ClusterFlags) Command(words ...string) string {
	return commandLine(words, &EngineFlags{"temporal", *f})
}

// Failed returns the failure for an error of the cluster.
func (f *ClusterFlags) Failed(err error) error {
	switch {
	case errors.Is(err, temporal.ErrUnknownRun):
		return cli.Fail(cli.StatusFailed, err, f.Command("runs", "list"))
	case errors.As(err, new(*journal.AnswerError)):
		return cli.Fail(cli.StatusFailed, err, "pawl runs show has the pending calls")
	case errors.Is(err, context.DeadlineExceeded):
		return cli.Fail(cli.StatusFailed, fmt.Errorf("no worker reports the state of the run: %w", err),
			"start a worker: pawl worker FILE.yaml")
	}
	return cli.Failed(err)
}
