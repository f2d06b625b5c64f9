package apiserver

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

// attacks are claims whose CPUs a tenant wants to hold with a pod that requests less. The
// quota of the namespace is 5 CPUs.
func attacks() map[string]struct{ requests, pod, want string } {
	const (
		main     = "containers: [{name: main, image: none, resources: {claims: [{name: c}]}}]"
		counted  = "exceeded quota: cpus, requested: requests.cpu=64, used: requests.cpu=0, limited: requests.cpu=5"
		exactly  = "{name: zone, exactly: {deviceClassName: zone.dra.numa, %scapacity: {requests: {cpu: 64}}}}"
		selector = "selectors: [{cel: {expression: '%s'}}], "
	)
	hidden := func(expression string) string { return fmt.Sprintf(exactly, fmt.Sprintf(selector, expression)) }
	plain := fmt.Sprintf(exactly, "")
	return map[string]struct{ requests, pod, want string }{
		"a range that no made-up zone is in": {
			hidden(`device.capacity["dra.numa"].cpu.isGreaterThan(quantity("20")) && device.capacity["dra.numa"].cpu.isLessThan(quantity("200"))`), main, counted,
		},
		"a product":                    {hidden(`device.attributes["dra.numa"].threadsPerCore * 5 == 10`), main, counted},
		"a name that is put together":  {hidden(`device.capacity["dra.numa"][["c"+"pu"][0]].isGreaterThan(quantity("20"))`), main, counted},
		"a prefixed name":              {"{name: zone, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {dra.numa/cpu: 64}}}}", main, counted},
		"a count that wraps to 0":      {"{name: zone, firstAvailable: [{name: a, deviceClassName: zone.dra.numa, count: 2305843009213693952, capacity: {requests: {cpu: 8}}}]}", main, "count 2305843009213693952: a claim can have at most 32 devices"},
		"a limit of a container":       {plain, "resources: {requests: {cpu: 1}}, containers: [{name: main, image: none, resources: {limits: {cpu: 1}, claims: [{name: c}]}}]", counted},
		"a limit below what it claims": {plain, "containers: [{name: main, image: none, resources: {limits: {cpu: 1}, claims: [{name: c}]}}]", "the requests lack cpu 63, which the pod's claims may hold; the limits are too low by cpu 63"},
		"CPUs that wrap to 100m":       {plain, "containers: [{name: main, image: none, resources: {requests: {cpu: 18446744073709551716m}, claims: [{name: c}]}}]", ""},
		"all zones":                    {"{name: zone, exactly: {deviceClassName: zone.dra.numa, allocationMode: All, capacity: {requests: {cpu: 64}}}}", main, "allocationMode All: the number of zones depends on the node"},
		"no container uses the claim":  {plain, "containers: [{name: main, image: none}]", counted},
		"an alternative":               {"{name: zone, firstAvailable: [{name: a, deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 1}}}, {name: b, deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 64}}}]}", main, counted},
	}
}

// attack lets a tenant try each. A claim that the API server refuses is no attack.
func attack(t *testing.T, admin kubernetes.Interface, namespace string) {
	t.Helper()
	pods, claims := admin.CoreV1().Pods(namespace), admin.ResourceV1().ResourceClaims(namespace)
	for what, row := range attacks() {
		claim := object.Parse[resourceapi.ResourceClaim](t, "{metadata: {name: attack}, spec: {devices: {requests: ["+row.requests+"]}}}")
		if _, err := claims.Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
			t.Errorf("%s: create the claim: %v", what, err)
			continue
		}
		pod := object.Parse[corev1.Pod](t, "{metadata: {name: attack}, spec: {resourceClaims: [{name: c, resourceClaimName: attack}], "+row.pod+"}}")
		_, err := pods.Create(t.Context(), pod, metav1.CreateOptions{})
		if row.want != "" {
			mustRefuse(t, what, row.want, err)
		} else if err == nil {
			t.Errorf("%s: the pod is accepted", what)
		}
		if err := claims.Delete(t.Context(), "attack", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}
