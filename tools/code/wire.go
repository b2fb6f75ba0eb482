package code

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// maxFrame is the maximum size of a child's frame, in bytes of JSON.
const maxFrame = 1 << 20

// wire is the pair of pipes to a child. The child is treated as hostile: any invalid frame ends it.
type wire struct {
	in, out       *os.File // from the child, to the child
	secret        [16]byte
	sent, arrived uint32
}

// childFrame holds everything that a child can send: calls, a result, or how its program ended.
type childFrame struct {
	Calls  []request       `json:"calls"`
	Result json.RawMessage `json:"result"`
	End    string          `json:"end"`

	Type    string   `json:"type"`
	Message string   `json:"message"`
	Lines   [][2]any `json:"lines"`
	Status  int      `json:"status"`
}

var (
	errForged = errors.New("it is not of the tool's own making")
	errLarge  = fmt.Errorf("it is larger than %d bytes", maxFrame)
)

// newWire returns the parent's ends and the child's ends. The child's are closed once the child has
// them.
func newWire() (w *wire, child []*os.File, err error) {
	w = &wire{}
	rand.Read(w.secret[:])
	toChild, out, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	in, fromChild, err := os.Pipe()
	if err != nil {
		toChild.Close()
		out.Close()
		return nil, nil, err
	}
	w.in, w.out = in, out
	return w, []*os.File{toChild, fromChild}, nil
}

func (w *wire) close() {
	w.in.Close()
	w.out.Close()
}

// send writes one frame.
func (w *wire) send(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.sent++
	head := binary.BigEndian.AppendUint32(make([]byte, 0, 24+len(b)), uint32(len(b)))
	head = binary.BigEndian.AppendUint32(append(head, w.secret[:]...), w.sent)
	_, err = w.out.Write(append(head, b...))
	return err
}

// receive reads one frame. The error is io.EOF if the child sends no more, errForged, or errLarge.
func (w *wire) receive() (f childFrame, err error) {
	var head [24]byte
	if n, err := io.ReadFull(w.in, head[:]); err != nil {
		if n > 0 && errors.Is(err, io.ErrUnexpectedEOF) {
			return f, errForged
		}
		return f, err
	}
	w.arrived++

	size := binary.BigEndian.Uint32(head[:4])
	secret := [16]byte(head[4:20])
	number := binary.BigEndian.Uint32(head[20:])
	switch {
	case secret != w.secret || number != w.arrived:
		return f, errForged
	case size > maxFrame:
		return f, errLarge
	}

	b := make([]byte, size)
	if _, err := io.ReadFull(w.in, b); err != nil {
		return f, err
	}
	if json.Unmarshal(b, &f) != nil {
		return f, errForged
	}
	return f, nil
}
