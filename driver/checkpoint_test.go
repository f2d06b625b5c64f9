package driver

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

func sampleCheckpoint() checkpoint {
	return newCheckpoint("boot-1", map[types.UID]Grant{
		"uid-b": {UID: "uid-b", Namespace: "default", Name: "b", Shares: []Share{
			{Request: "r", Device: "numa-0", ShareID: "s", CPUs: cpuset.New(2, 3)},
		}},
		"uid-a": {UID: "uid-a", Namespace: "default", Name: "a", Shares: []Share{
			{Request: "main/sub", Device: "numa-1", Zone: 1, CPUs: cpuset.New(4, 5)},
			{Request: "memory", Device: "numa-2", Zone: 2},
		}},
	})
}

func mustEncode(t testing.TB, c checkpoint) []byte {
	t.Helper()
	data, err := encodeCheckpoint(c)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestCheckpointRoundTrip(t *testing.T) {
	want := sampleCheckpoint()
	got, err := decodeCheckpoint(mustEncode(t, want))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("decode(encode(c)) = %+v, %v, want %+v", got, err, want)
	}
}

func TestCheckpointPrefixIsDamaged(t *testing.T) {
	data := mustEncode(t, sampleCheckpoint())
	for n := range data {
		if got, err := decodeCheckpoint(data[:n]); err == nil {
			t.Errorf("first %d bytes decode to %+v", n, got)
		}
	}
}

func TestCheckpointFlippedByteIsDamaged(t *testing.T) {
	data := mustEncode(t, sampleCheckpoint())
	for i := range data {
		for flip := 1; flip < 256; flip++ {
			torn := bytes.Clone(data)
			torn[i] ^= byte(flip)
			if _, err := decodeCheckpoint(torn); err == nil {
				t.Fatalf("byte %d %q changed to %q goes unnoticed", i, data[i], torn[i])
			}
		}
	}
}

func FuzzDecodeCheckpoint(f *testing.F) {
	f.Add(mustEncode(f, sampleCheckpoint()))
	f.Add(mustEncode(f, checkpoint{}))
	f.Fuzz(func(t *testing.T, data []byte) {
		decoded, err := decodeCheckpoint(data)
		if err != nil {
			return
		}
		if again := mustEncode(t, decoded); !bytes.Equal(again, data) {
			t.Errorf("encode(decode(%q)) = %q", data, again)
		}
	})
}

func TestCheckpointWithOneCPUTwiceIsDamaged(t *testing.T) {
	twice := sampleCheckpoint()
	twice.Grants[1].Shares[0].CPUs = cpuset.New(4)
	if _, err := decodeCheckpoint(mustEncode(t, twice)); err == nil || !strings.Contains(err.Error(), "cpus 4 are in two shares") {
		t.Errorf("error %v", err)
	}
}

func TestOpenRefusesUnusableCheckpoint(t *testing.T) {
	newer := bytes.Replace(mustEncode(t, sampleCheckpoint()), []byte(`"version":1`), []byte(`"version":2`), 1)
	for name, row := range map[string]struct {
		data []byte
		want string
	}{
		"newer":   {newer, "version 2, newest known is 1; install the newer dra-numa"},
		"empty":   {nil, "drain the node, delete the file"},
		"corrupt": {bytes.Replace(mustEncode(t, sampleCheckpoint()), []byte("4-5"), []byte("4-6"), 1), "checksum"},
	} {
		t.Run(name, func(t *testing.T) {
			disk := newDisk(t)
			path := filepath.Join(disk.state, checkpointName)
			if err := os.WriteFile(path, row.data, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := disk.tryOpen(testConfig())
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("error %v, want ErrDamaged with %q and the path", err, row.want)
			}
			if strings.ContainsAny(err.Error(), "\r\n") {
				t.Errorf("error %q is not one line", err)
			}
			if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, row.data) {
				t.Errorf("the damaged file was touched: %q, %v", now, err)
			}
		})
	}
}
