package driver

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// podOf makes a pod from one line of containers "kind:claim/request,claim", where the
// kind is init, side or main. The pod has an entry for each claim, with the same name.
// An entry in capitals comes from a template: the claim of entry A is a.
func podOf(line string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod", Namespace: "default"}}
	entries := map[string]bool{}
	for i, word := range strings.Fields(line) {
		kind, uses, _ := strings.Cut(word, ":")
		container := corev1.Container{Name: fmt.Sprintf("c%d", i)}
		for _, use := range strings.FieldsFunc(uses, func(r rune) bool { return r == ',' }) {
			entry, request, _ := strings.Cut(use, "/")
			container.Resources.Claims = append(container.Resources.Claims, corev1.ResourceClaim{Name: entry, Request: request})
			entries[entry] = true
		}
		switch kind {
		case "main":
			pod.Spec.Containers = append(pod.Spec.Containers, container)
			continue
		case "side":
			container.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, container)
	}
	for entry := range entries {
		claim := ptr.To(strings.ToLower(entry))
		if entry == *claim {
			pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{Name: entry, ResourceClaimName: claim})
			continue
		}
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{Name: entry, ResourceClaimTemplateName: ptr.To("template")})
		pod.Status.ResourceClaimStatuses = append(pod.Status.ResourceClaimStatuses, corev1.PodResourceClaimStatus{Name: entry, ResourceClaimName: claim})
	}
	return pod
}

// scopesOf decides the scopes of shares "claim/request" and returns them in the same
// order. A share may end with +mixed or +memory, and then with =scope if its scope is
// on record.
func scopesOf(pods []string, line string) string {
	var shares []scoped
	for word := range strings.FieldsSeq(line) {
		name, record, recorded := strings.Cut(word, "=")
		name, kind, _ := strings.Cut(name, "+")
		claim, request, _ := strings.Cut(name, "/")
		if record == "container" {
			record = ledger.ScopeContainer
		}
		shares = append(shares, scoped{
			claim: claim, request: request, cpus: kind != "memory", mixed: kind == "mixed", recorded: recorded, scope: record,
		})
	}
	var parsed []*corev1.Pod
	for _, pod := range pods {
		name, ended := strings.CutSuffix(pod, " ended")
		next := podOf(name)
		if ended {
			next.Status.Phase = corev1.PodSucceeded
		}
		parsed = append(parsed, next)
	}
	decideScopes(parsed, shares)
	var scopes []string
	for _, share := range shares {
		scope := share.scope
		if scope == ledger.ScopeContainer {
			scope = "container"
		}
		scopes = append(scopes, scope)
	}
	return strings.Join(scopes, " ")
}

func TestScopes(t *testing.T) {
	list := func(pods ...string) []string { return pods }
	for name, row := range map[string]struct {
		pods         []string
		shares, want string
	}{
		"nobody known":                   {nil, "a/r", "container"},
		"one container":                  {list("main:a"), "a/r", "container"},
		"of a template":                  {list("main:A main:A"), "a/r", "pod"},
		"one of two":                     {list("main:a main:"), "a/r", "container"},
		"in a pod that does not use it":  {list("main:"), "a/r", "container"},
		"init, then main":                {list("init:a main:a"), "a/r", "container"},
		"init, init, one main of two":    {list("init:a init: init:a main: main:a"), "a/r", "container"},
		"init only":                      {list("init:a main: main:"), "a/r", "container"},
		"all mains":                      {list("main:a main:a main:a"), "a/r", "pod"},
		"all but one":                    {list("main:a main:a main:"), "a/r", "shared"},
		"all after another init":         {list("init: main:a main:a"), "a/r", "pod"},
		"init and all mains":             {list("init:a main:a main:a"), "a/r", "pod"},
		"init between is no user":        {list("init:a init: main:a main:a"), "a/r", "shared"},
		"sidecar and main":               {list("side:a main:a"), "a/r", "pod"},
		"sidecar is no user":             {list("side: main:a"), "a/r", "container"},
		"sidecar is the only user":       {list("side:a main:"), "a/r", "container"},
		"sidecar beside two mains":       {list("side: main:a main:a"), "a/r", "shared"},
		"sidecar and init":               {list("side:a init:a main:a"), "a/r", "pod"},
		"init before the sidecar":        {list("init: side:a main:a"), "a/r", "pod"},
		"init behind a sidecar":          {list("side:a init: main:a"), "a/r", "shared"},
		"init beside a foreign sidecar":  {list("side: init:a main:a"), "a/r", "container"},
		"sidecars only":                  {list("side:a side:a main:"), "a/r", "shared"},
		"two pods":                       {list("main:a", "main:a"), "a/r", "container"},
		"two pods of two containers":     {list("main:a main:a", "init:a main:a main:a"), "a/r", "pod"},
		"two pods, a stranger in one":    {list("main:a main:a", "main:a main:a main:"), "a/r", "shared"},
		"second pod does not use it":     {list("main:a", "main:"), "a/r", "container"},
		"second pod has ended":           {list("main:a", "main:a ended"), "a/r", "container"},
		"two pods, one container each":   {list("init:a main:a", "main:a main:a"), "a/r", "shared"},
		"requests of their own":          {list("main:a/r main:a/s"), "a/r a/s", "container container"},
		"requests of three":              {list("main:a/r main:a/s main:a/t"), "a/r a/s a/t", "container container container"},
		"request, then another":          {list("init:a/r main:a/s main:a/s"), "a/r a/s", "pod pod"},
		"requests of init and sidecar":   {list("init:a/r side:a/s main:a/t"), "a/r a/s a/t", "container container container"},
		"one request in both":            {list("main:a/r main:a"), "a/r a/s", "pod pod"},
		"one in both, the other in one":  {list("main:a/r main:a/r main:a/s"), "a/r a/s", "pod pod"},
		"one in both, beside another":    {list("main:a/r main:a main:"), "a/r a/s", "shared shared"},
		"one in two, one alone, one not": {list("main:a/r main:a/r main:a/s main:"), "a/r a/s", "shared container"},
		"two requests of one container":  {list("main:a/r,A/s main:a/t"), "a/r a/s a/t", "container container container"},
		"request of nobody":              {list("main:a/r main:a/r"), "a/r a/s", "pod container"},
		"two claims of one container":    {list("main:a,b"), "a/r b/r", "container container"},
		"two claims of all":              {list("main:a,b main:b,a"), "a/r b/r", "pod pod"},
		"two claims, other containers":   {list("main:a main:b"), "a/r b/r", "container container"},
		"two claims of one of two":       {list("main:a,b main:a"), "a/r b/r", "shared shared"},
		"two claims of all, one of init": {list("init:a main:a,b main:a,b"), "a/r b/r", "pod pod"},
		"claim of init beside a pod's":   {list("init:b main:a main:a"), "a/r b/r", "shared shared"},
		"poison through a container":     {list("main:a,b main:b main:"), "a/r b/r", "shared shared"},
		"poison through two containers":  {list("init:c,d main:a,b main:b,c main:"), "a/r b/r c/r d/r", "shared shared shared shared"},
		"poison stays in its containers": {list("main:a,b main:b main:c"), "a/r b/r c/r", "shared shared container"},
		"poison from another pod":        {list("main:a,b", "main:a main:a main:"), "a/r b/r", "shared shared"},
		"poison on record":               {list("main:a,b"), "a/r b/r=shared", "shared shared"},
		"poison of what is on record":    {list("main:a,b main:a main:"), "a/r b/r=container", "shared shared"},
		"on record it stays":             {list("init:a main:a", "main:a"), "a/r=container", "container"},
		"on record, two at once now":     {list("main:a main:a", "main:a"), "a/r=container", "shared"},
		"on record, of all of the pod":   {list("main:a main:a", "main:a"), "a/r=pod", "pod"},
		"on record, a stranger now":      {list("main:a main:a", "main:a main:"), "a/r=pod", "shared"},
		"mixed":                          {list("main:a"), "a/r+mixed", "container"},
		"mixed of all":                   {list("main:a main:a"), "a/r+mixed", "shared"},
		"mixed is poison":                {list("main:a,b"), "a/r b/r+mixed", "shared container"},
		"mixed beside":                   {list("main:a main:b"), "a/r b/r+mixed", "container container"},
		"memory of all":                  {list("main:a main:a"), "a/r+memory", "shared"},
		"memory is no poison":            {list("main:a,b main:b main:"), "a/r b/r+memory", "container shared"},
		"memory beside a pod's":          {list("main:a,b main:a"), "a/r b/r+memory", "pod container"},
	} {
		if got := scopesOf(row.pods, row.shares); got != row.want {
			t.Errorf("%s: %v have %s with scopes %s, want %s", name, row.pods, row.shares, got, row.want)
		}
	}
}

func TestClaimsOfAPodAgreeInAnyOrder(t *testing.T) {
	pod := podOf("main:A,b main:b main:")
	a, b := claim("a", result("r", "numa-0", 2)), claim("b", result("r", "numa-1", 2))
	for range 2 {
		disk := newDisk(t)
		driver := disk.open()
		mustPrepare(t, driver, a, pod)
		mustPrepare(t, driver, b, pod)
		for _, grant := range driver.Grants() {
			if grant.Shares[0].Scope() != ledger.ScopeShared || grant.Shares[0].KernelExclusive() {
				t.Errorf("%s has scope %q", grant, grant.Shares[0].Scope())
			}
		}
		assertConsistent(t, disk, driver)
		files := disk.files()
		mustPrepare(t, driver, a) // from a caller that does not know the pod
		assertFiles(t, disk.files(), files)
		a, b = b, a
	}
}

// The spec of the other claim is written although nothing has to be recorded.
func TestSpecOfAnotherClaimIsRepaired(t *testing.T) {
	disk := newDisk(t)
	driver := disk.open()
	pod := podOf("main:a,b main:b main:")
	mustPrepare(t, driver, claim("a", result("r", "numa-0", 2)), pod)
	stale := disk.files()[specName("uid-a")]
	mustPrepare(t, driver, claim("b", result("r", "numa-1", 2)), pod)
	files := disk.files()
	disk.write(specName("uid-a"), stale)
	if stale == files[specName("uid-a")] {
		t.Fatal("the spec did not change")
	}
	mustPrepare(t, driver, claim("b", result("r", "numa-1", 2)), pod)
	assertFiles(t, disk.files(), files)
}

func TestSpecSaysTheScope(t *testing.T) {
	for line, want := range map[string]string{
		"main:a":               `"--partition=root","--scope=container"`,
		"main:a main:a":        `"--partition=root","--scope=pod"`,
		"main:a main:a main: ": `"--partition=none","--scope=container"`,
	} {
		disk := newDisk(t)
		mustPrepare(t, disk.open(), claim("a", result("r", "numa-0", 2)), podOf(line))
		if spec := disk.files()[specName("uid-a")]; !strings.Contains(spec, want) {
			t.Errorf("%s: spec %s has no %s", line, spec, want)
		}
	}
}

// A pod with a CPU limit of its own has a quota that is not the sum of those of its containers.
func TestSpecSaysWhoseQuotasAreLifted(t *testing.T) {
	disk := newDisk(t)
	driver := disk.open()
	wanted := claim("a", result("r", "numa-0", 2))
	pod := func(uid types.UID, limit string, containers ...string) *corev1.Pod {
		pod := podOf("main:a main:")
		pod.UID = uid
		for i, limit := range containers {
			pod.Spec.Containers[i].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(limit)}
		}
		if limit != "" {
			pod.Spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(limit)}}
		}
		return pod
	}
	for _, step := range []struct {
		reservedFor []types.UID
		read        []*corev1.Pod
		want        string // the flag; "" for none
	}{
		{[]types.UID{"p1"}, nil, ""},
		{[]types.UID{"p1"}, []*corev1.Pod{pod("p1", "4")}, ""},
		{[]types.UID{"p1"}, []*corev1.Pod{pod("p1", "", "2", "500m")}, "p1=2500"},
		{[]types.UID{"p1"}, nil, "p1=2500"}, // from the record
		{[]types.UID{"p2", "p1", "p3", "p4"}, []*corev1.Pod{pod("p3", "4"), pod("p2", "", "2")}, "p1=2500,p2=0"},
		{[]types.UID{"p2", "p1"}, []*corev1.Pod{pod("p2", "4"), pod("p1", "", "2", "5T")}, "p1=0"},
		{[]types.UID{"p2"}, nil, ""},
	} {
		mustPrepare(t, driver, reserved(wanted, step.reservedFor...), step.read...)
		_, got, _ := strings.Cut(disk.files()[specName("uid-a")], `"--lift-quota=`)
		if got, _, _ = strings.Cut(got, `"`); got != step.want {
			t.Errorf("reserved for %s: --lift-quota=%s, want %s", step.reservedFor, got, step.want)
		}
		assertConsistent(t, disk, driver)
	}
}

// A claim with the same name in another namespace is not a neighbour.
func TestNeighboursAreOfTheSameNamespace(t *testing.T) {
	driver := newDisk(t).open()
	foreign := claim("b", result("r", "numa-1", 2))
	foreign.Namespace = "other"
	mustPrepare(t, driver, foreign, podOf("main:b main:b main:"))
	mustPrepare(t, driver, claim("a", result("r", "numa-0", 2)), podOf("main:a,b"))
	if got := grantOf(driver, "uid-a").Shares[0]; got.Scope() != ledger.ScopeContainer || got.CPUs() != cpuset.New(2, 3) {
		t.Errorf("share %+v, want one container's cpus 2-3", got)
	}
}

// A claim was deleted by force, and its containers still run. The claim that has its name now
// decides the scopes of its pod, not the grant that is left.
func TestGrantThatIsLeftIsNoNeighbour(t *testing.T) {
	driver := newDisk(t).openWith(watched(&Containers{Pods: map[types.UID]bool{"old": true}, AllPods: true}))
	mustPrepare(t, driver, reserved(claim("x", result("r", "numa-1", 2)), "old"), podOf("main:x main:x main:"))
	if err := driver.Abandon("uid-x"); err != nil {
		t.Fatal(err)
	}
	again := claim("x", result("r", "numa-1", 2))
	again.UID = "uid-x2"
	pod := podOf("main:x,y")
	mustPrepare(t, driver, claim("y", result("r", "numa-0", 2)), pod)
	mustPrepare(t, driver, again, pod)
	for uid, want := range map[types.UID]string{"uid-x": ledger.ScopeShared, "uid-x2": ledger.ScopeContainer, "uid-y": ledger.ScopeContainer} {
		if got := grantOf(driver, uid).Shares[0].Scope(); got != want {
			t.Errorf("claim %s has scope %q, want %q", uid, got, want)
		}
	}
}
