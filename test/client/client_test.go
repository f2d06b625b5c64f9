package client

import "testing"

func TestRigIsInTheCacheOfTheUser(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv("RIG_DIR", "")
	t.Setenv("XDG_CACHE_HOME", "/elsewhere")
	if got, want := DefaultKubeconfig(), "/elsewhere/dra-driver-numa/rig/run/default/admin.kubeconfig"; got != want {
		t.Errorf("the kubeconfig is %s, want %s", got, want)
	}
}
