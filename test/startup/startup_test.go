package startup

import (
	"slices"
	"strings"
	"testing"
)

const kubeletLog = `I1129 01:45:01.039127     346 kubelet.go:2760] "SyncLoop ADD" source="api" pods=[]
I1129 01:45:49.782844     346 kubelet.go:2760] "SyncLoop ADD" source="api" pods=["team/other","team/main"]
I1129 01:45:50.782844     346 kubelet.go:2760] "SyncLoop DELETE" source="api" pods=["team/main"]
`

const containerdLog = `time="2026-11-29T01:45:50.182844000Z" level=info msg="RunPodSandbox for name:\"main\" uid:\"8154\" namespace:\"team\""
time="2026-11-29T01:45:50.200000000Z" level=info msg="RunPodSandbox for name:\"other\" uid:\"8155\" namespace:\"team\""
time="2026-11-29T01:45:53.182844000Z" level=info msg="RunPodSandbox for name:\"main\" uid:\"8154\" namespace:\"team\" returns sandbox id \"47ab\""
time="2026-11-29T01:45:53.283000000Z" level=info msg="CreateContainer within sandbox \"47ab\" for container name:\"probe\""
time="2026-11-29T01:45:53.382844000Z" level=info msg="CreateContainer within sandbox \"47ab\" for name:\"probe\" returns container id \"03cd\""
time="2026-11-29T01:45:53.581756290Z" level=info msg="StartContainer for \"03cd\""
time="2026-11-29T01:45:54.082844000Z" level=info msg="StartContainer for \"03cd\" returns successfully"
`

func TestReadAddsUpTheSteps(t *testing.T) {
	got, err := Read(kubeletLog, containerdLog, "team", "main")
	if want := []float64{400, 3000, 200, 700}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	if total := (Sample{Milliseconds: got}).Total(); total != 4300 || len(got) != len(Parts()) {
		t.Errorf("%d parts take %v", len(got), total)
	}
	for pod, want := range map[string]string{"nobody": "does not say when it saw pod team/nobody", "other": "do not have each step of pod team/other"} {
		if _, err := Read(kubeletLog, containerdLog, "team", pod); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", pod, err, want)
		}
	}
}
