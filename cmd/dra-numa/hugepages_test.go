package main

import (
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

func TestRefuseHugePages(t *testing.T) {
	if err := refuseHugePages(); err != nil {
		t.Fatal(err)
	}
	status := files.Read(t, "/proc/self/status")
	if !strings.Contains(status, "\nTHP_enabled:\t0\n") {
		t.Errorf("THP_enabled is not 0 in:\n%s", status)
	}
}
