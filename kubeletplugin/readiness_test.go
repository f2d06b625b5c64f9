package kubeletplugin

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dra-driver-numa/dra-driver-numa/internal/keeperfile"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

func TestEveryProblemHasAReason(t *testing.T) {
	for reason, problem := range map[Reason]error{
		ReasonAPIServer: errNotListed, ReasonKeeper: keeperfile.ErrUnknown, ReasonDroppedField: &droppedError{},
		ReasonOtherDriver: guardError{ReasonOtherDriver, "driver"}, ReasonKubeletManager: guardError{ReasonKubeletManager, "static"},
		ReasonRehearsal: guardError{ReasonRehearsal, "disk"},
	} {
		if got := reasonOf(problem); got != reason {
			t.Errorf("reason of %v is %s, want %s", problem, got, reason)
		}
	}
}

// What is required does not count while the daemon stands by: it has nothing yet.
func TestReadinessNamesEachProblem(t *testing.T) {
	var r Readiness
	lacks := "no heartbeat for 50s"
	r.Require(ReasonKeeper, func() string { return lacks })
	answer := func(wantStatus int, wantText string, wantReasons ...Reason) {
		t.Helper()
		var reasons []Reason
		for _, problem := range r.Problems() {
			reasons = append(reasons, problem.Reason)
		}
		if status, text := r.answer(); status != wantStatus || text != wantText || !cmp.Equal(reasons, wantReasons) {
			t.Errorf("answer %d %q because of %v, want %d %q because of %v", status, text, reasons, wantStatus, wantText, wantReasons)
		}
	}
	answer(http.StatusServiceUnavailable, "starting", ReasonStarting)
	r.Standby("another daemon")
	answer(http.StatusOK, "standby: another daemon", ReasonStandby)
	r.NotReady(ReasonAPIServer, "not listed")
	answer(http.StatusServiceUnavailable, strings.Join([]string{"not listed", lacks}, "\n"), ReasonAPIServer, ReasonKeeper)
	r.change(Problem{}, "")
	answer(http.StatusServiceUnavailable, lacks, ReasonKeeper)
	lacks = ""
	answer(http.StatusOK, "ok")
}

func TestEveryReasonIsDocumented(t *testing.T) {
	page := files.Read(t, "../docs/monitoring.md")
	for _, reason := range []Reason{
		ReasonStarting, ReasonStandby, ReasonAPIServer, ReasonDroppedField, ReasonKeeper, ReasonKubelet, ReasonKubeletManager, ReasonOtherDriver, ReasonRehearsal,
	} {
		if !strings.Contains(page, "\n| `"+string(reason)+"` | ") {
			t.Errorf("docs/monitoring.md lacks the reason %s", reason)
		}
	}
}
