package temporal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
)

// Blobs stores payloads that are too large for a history, by digest. All workers and clients of a
// cluster share it. It must retain blobs as long as the cluster retains histories. Dir stores them
// in a directory. Implementations must be safe for concurrent use.
type Blobs interface {
	// Put stores b under digest. The same blob may be stored repeatedly.
	Put(ctx context.Context, digest string, b []byte) error
	// Get returns the stored blob. The caller must not change it.
	Get(ctx context.Context, digest string) ([]byte, error)
}

var _ Blobs = Dir("")

// Dir stores blobs as files of a directory. Workers on several machines must share it. Files are
// never removed.
type Dir string

// Put writes the file atomically.
func (d Dir) Put(_ context.Context, digest string, b []byte) error {
	path := d.path(digest)

	// The name is the digest of the content.
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return err
	}

	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// Get reads the file, and verifies its digest.
func (d Dir) Get(_ context.Context, digest string) ([]byte, error) {
	if len(digest) != 2*sha256.Size {
		return nil, fmt.Errorf("blob %q: that is no digest", digest)
	}
	b, err := os.ReadFile(d.path(digest))
	if err == nil && digestOf(b) != digest {
		err = fmt.Errorf("blob %s is not what was written", digest)
	}
	return b, err
}

func (d Dir) path(digest string) string { return filepath.Join(string(d), digest[:2], digest) }

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// largest is the size in bytes above which a payload is stored outside the history. The server
// accepts 2 MiB for one payload, and 4 MiB for several together.
const largest = 64 << 10

const (
	metadataEncoding = "encoding"
	encodingBlob     = "pawl/blob"
)

// Converter returns the form of payloads: as the SDK writes them, with large ones by reference to
// b. Workflows also store and read blobs, and the SDK gives a workflow one second between two
// waits: with a slower store, the task is tried again.
func Converter(b Blobs) converter.DataConverter {
	return converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), claims{b})
}

// claims is the codec that stores large payloads in blobs.
type claims struct{ blobs Blobs }

var _ converter.PayloadCodec = claims{}

const blobTime = 20 * time.Second // for one blob

// Encode stores large payloads.
func (c claims) Encode(in []*commonpb.Payload) ([]*commonpb.Payload, error) {
	out := make([]*commonpb.Payload, len(in))
	for i, p := range in {
		out[i] = p
		if len(p.GetData()) <= largest {
			continue
		}

		form, err := p.Marshal()
		if err != nil {
			return nil, err
		}
		digest := digestOf(form)
		ctx, cancel := context.WithTimeout(context.Background(), blobTime)
		err = c.blobs.Put(ctx, digest, form)
		cancel()
		if err != nil {
			return nil, fmt.Errorf("blob of %d bytes: %w", len(form), err)
		}
		out[i] = &commonpb.Payload{
			Metadata: map[string][]byte{metadataEncoding: []byte(encodingBlob)},
			Data:     []byte(digest),
		}
	}
	return out, nil
}

// Decode reads large payloads.
func (c claims) Decode(in []*commonpb.Payload) ([]*commonpb.Payload, error) {
	out := make([]*commonpb.Payload, len(in))
	for i, p := range in {
		out[i] = p
		if string(p.GetMetadata()[metadataEncoding]) != encodingBlob {
			continue
		}

		ctx, cancel := context.WithTimeout(context.Background(), blobTime)
		form, err := c.blobs.Get(ctx, string(p.GetData()))
		cancel()
		if err != nil {
			return nil, err
		}
		whole := new(commonpb.Payload)
		if err := whole.Unmarshal(form); err != nil {
			return nil, err
		}
		out[i] = whole
	}
	return out, nil
}
