package main

import (
	"os"
	"strings"
	"testing"
)

func TestRefuseHugePages(t *testing.T) {
	if err := refuseHugePages(); err != nil {
		t.Fatal(err)
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(status), "\nTHP_enabled:\t0\n") {
		t.Errorf("THP_enabled is not 0 in:\n%s", status)
	}
}
