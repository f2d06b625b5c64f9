package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Why a body gets no room.
var (
	errTooLarge = fmt.Errorf("allowed are %d bytes", maxReviewBytes)
	errSlowest  = errors.New("too much else arrives, and this one has taken longest")
	errBusy     = errors.New("too many others are under way")
)

// intake is the memory for bodies: those that arrive, and those that wait for room. Any pod
// of the cluster can send some, so a body that arrives holds up no other one. If all bodies
// need more than most, those that came first lose theirs: a body of an API server takes
// milliseconds.
type intake struct {
	most int // bytes, at least maxReviewBytes

	mu     sync.Mutex
	used   int
	bodies []*body // in the order in which they came
}

// body is the body of a request.
type body struct {
	intake *intake
	text   []byte
	lost   chan struct{} // closed when it has lost its memory

	// Guarded by intake.mu:
	size int    // that counts for it in intake.used
	out  bool   // it is no longer in intake.bodies
	stop func() // has its read end; nil when it is read
}

// read reads the body of a request. It gives up at the deadline, or if the body is too
// large, or loses its memory. Who has the body calls done.
func (i *intake) read(w http.ResponseWriter, r *http.Request, deadline time.Time) (*body, error) {
	if r.ContentLength > maxReviewBytes {
		return nil, fmt.Errorf("%d bytes: %w", r.ContentLength, errTooLarge)
	}
	connection := http.NewResponseController(w)
	// Without a connection, or if it is gone, reading says so.
	_ = connection.SetReadDeadline(deadline)
	b := &body{intake: i, lost: make(chan struct{}), stop: func() { _ = connection.SetReadDeadline(time.Unix(1, 0)) }}
	i.add(b)
	err := b.fill(r.Body)
	if !b.arrived() {
		err = errSlowest
	}
	if err != nil {
		b.done()
		return nil, err
	}
	_ = connection.SetReadDeadline(time.Time{}) // which would end the request
	return b, nil
}

// firstBytes is the memory that a body gets before any of it has arrived.
const firstBytes = 4 << 10

// fill reads to the end. It asks for memory for what arrives, whatever size the client says.
func (b *body) fill(from io.Reader) error {
	for {
		if len(b.text) == cap(b.text) {
			size := min(max(2*cap(b.text), firstBytes), maxReviewBytes+1)
			if !b.intake.grow(b, size) {
				return errSlowest
			}
			larger := make([]byte, len(b.text), size) // append might take more
			copy(larger, b.text)
			b.text = larger
		}
		n, err := from.Read(b.text[len(b.text):cap(b.text)])
		b.text = b.text[:len(b.text)+n]
		switch {
		case len(b.text) > maxReviewBytes:
			return errTooLarge
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

func (i *intake) add(b *body) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.bodies = append(i.bodies, b)
}

// grow reports whether the body may have size bytes. The bodies that came first lose their
// memory until there is enough.
func (i *intake) grow(b *body, size int) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	for !b.out {
		if i.used+size-b.size <= i.most {
			i.used += size - b.size
			b.size = size
			return true
		}
		first := i.bodies[0]
		i.remove(first)
		close(first.lost)
		if first.stop != nil {
			first.stop()
		}
	}
	return false
}

// remove takes back the memory of a body, once.
func (i *intake) remove(b *body) {
	if b.out {
		return
	}
	index := slices.Index(i.bodies, b)
	i.bodies = slices.Delete(i.bodies, index, index+1)
	i.used -= b.size
	b.out = true
}

// arrived ends the reading of a body. It returns false if the body has lost its memory.
func (b *body) arrived() bool {
	b.intake.mu.Lock()
	defer b.intake.mu.Unlock()
	b.stop = nil
	return !b.out
}

// done gives the memory back: from now on, it counts elsewhere or is no longer needed.
func (b *body) done() {
	b.intake.mu.Lock()
	defer b.intake.mu.Unlock()
	b.intake.remove(b)
}

// wait takes a place in a room. It fails if the body loses its memory first, or ctx ends.
func (b *body) wait(ctx context.Context, room chan struct{}) error {
	select {
	case <-b.lost:
		return errSlowest
	default:
	}
	select {
	case room <- struct{}{}:
		return nil
	case <-b.lost:
		return errSlowest
	case <-ctx.Done():
		return errBusy
	}
}
