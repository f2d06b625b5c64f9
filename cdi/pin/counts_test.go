package pin

import (
	"context"
	"maps"
	"testing"
)

// The keeper counts what it has repaired by what was wrong, as the kernel would show it.
func TestKeeperCountsItsWork(t *testing.T) {
	m := newFake(t, false)
	m.stranger = true
	running(m, ctrA, ctrC)
	mustPin(m, ctrA, ScopeContainer, claimed("job", "2-3", "1", PartitionRoot))
	mustPin(m, ctrC, ScopeContainer, claimed("other", "6", "", PartitionNone))
	k := keeper(m.host(), nil)
	want := map[Cause]uint64{}
	for _, step := range []struct {
		file, value string
		cause       Cause
	}{
		{ctrA + "/" + partitionFile, "member", CausePartition},
		{ctrA + "/" + memsFile, "0", CauseMems},
		{podA + "/" + exclusiveFile, "", CausePartition},
		{ctrC + "/" + cpusFile, "7", CauseCPUs},
		{ctrA + "/" + partitionFile, "isolated", CausePartition},
	} {
		m.write(step.file, step.value)
		if !k.pass(context.Background(), &watch{}) {
			t.Fatalf("%s = %q is not repaired", step.file, step.value)
		}
		want[step.cause]++
		if got := k.Counts().Repairs; !maps.Equal(got, want) {
			t.Errorf("after %s = %q the repairs are %v, want %v", step.file, step.value, got, want)
		}
	}
	m.end(ctrC)
	_ = k.pass(context.Background(), &watch{})
	if got := k.Counts(); got.Releases != 1 || got.Unrepaired != 0 {
		t.Errorf("%d releases and %d not repaired, want 1 and 0", got.Releases, got.Unrepaired)
	}
}

func TestEveryCauseIsListed(t *testing.T) {
	for _, cause := range Causes() {
		file := map[Cause]string{CausePartition: partitionFile, CauseExclusive: exclusiveFile + ".effective", CauseCPUs: cpusFile + ".effective", CauseMems: memsFile}[cause]
		if got := causeOf(differs(file, "is %q", "1")); got != cause {
			t.Errorf("cause of %q is %s, want %s", file, got, cause)
		}
	}
	if got := causeOf(context.Canceled); got != CauseOther {
		t.Errorf("cause of another error is %s", got)
	}
}
