package pin

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/internal/histogram"
)

// Hooks is how long hooks have taken on this host, from their start until the kernel had
// granted what the claim has, or until they knew that it does not. A hook ends too soon to
// be asked, so the file of the host's lock has the figures. Only the process that holds the
// lock writes there.
type Hooks struct {
	Pinned  histogram.Durations // of hooks that let the container start
	Refused histogram.Durations // of those that did not
}

// hooksBytes bounds what is read of the file.
const hooksBytes = 4 << 10

// recordedHooks is the content of the file. The daemon reads it without the lock, so that
// it can never hold up a hook. Check tells it whether it has read all of one write.
type recordedHooks struct {
	Pinned  histogram.Saved `json:"pinned"`
	Refused histogram.Saved `json:"refused"`
	Check   uint64          `json:"check"`
}

func (r recordedHooks) sum() uint64 {
	r.Check = 0
	text, _ := json.Marshal(r) // numbers only: no error
	sum := fnv.New64a()
	_, _ = sum.Write(text)
	return sum.Sum64()
}

// CountHook adds one hook to the figures. The caller holds the Lock with this name. What
// cannot be read is replaced: figures start from nothing, as after a reboot.
func CountHook(lock string, took time.Duration, refused bool) error {
	file, err := os.OpenFile(lock, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	recorded, err := readHooks(file)
	if err != nil {
		recorded = recordedHooks{}
	}
	var hooks Hooks
	hooks.load(recorded)
	if refused {
		hooks.Refused.Add(took)
	} else {
		hooks.Pinned.Add(took)
	}
	recorded = recordedHooks{Pinned: hooks.Pinned.Save(), Refused: hooks.Refused.Save()}
	recorded.Check = recorded.sum()
	text, _ := json.Marshal(recorded) // as in sum
	_, err = file.WriteAt(append(text, '\n'), 0)
	if err == nil {
		err = file.Truncate(int64(len(text) + 1))
	}
	return errors.Join(err, file.Close())
}

// ReadHooks reads the figures from the file of the lock. They are empty if no hook has run
// yet. While a hook writes them, ReadHooks may return an error.
func ReadHooks(lock string) (*Hooks, error) {
	file, err := os.Open(lock)
	if errors.Is(err, fs.ErrNotExist) {
		return &Hooks{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	recorded, err := readHooks(file)
	if err != nil {
		return nil, err
	}
	hooks := &Hooks{}
	hooks.load(recorded)
	return hooks, nil
}

func (h *Hooks) load(recorded recordedHooks) {
	h.Pinned.Load(recorded.Pinned)
	h.Refused.Load(recorded.Refused)
}

// readHooks accepts an empty file, which a lock is that no hook has held.
func readHooks(file io.ReaderAt) (recorded recordedHooks, err error) {
	text, err := io.ReadAll(io.NewSectionReader(file, 0, hooksBytes))
	if err != nil || len(text) == 0 {
		return recordedHooks{}, err
	}
	err = json.Unmarshal(text, &recorded)
	if err == nil && recorded.Check != recorded.sum() {
		err = errors.New("the check does not match")
	}
	if err != nil {
		return recordedHooks{}, fmt.Errorf("read figures of hooks: %w", err)
	}
	return recorded, nil
}
