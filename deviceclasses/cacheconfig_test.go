package deviceclasses

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const cacheHead = `{"apiVersion": "dra.numa/v1alpha1", "kind": "CacheConfig"`

// cacheFields are the rows of each field: default, valid, edge, invalid.
func cacheFields() map[string][]fieldRow {
	return map[string][]fieldRow{
		"cpus": append(texts("cpus", "workers"),
			fieldRow{class: `"a"`, json: `"b"`, want: "b"},
			fieldRow{json: `"main/sub"`, err: `cpus: "main/sub", allowed is the name of a request: ` + label},
			fieldRow{json: `"Main"`, err: `cpus: "Main", allowed is the name of a request: ` + label},
		),
		"maxWays": {
			{json: "", want: "0"}, // default
			{json: "null", want: "0"},
			{json: "0", want: "0"},
			{json: "1", want: "1"},
			{json: "64", want: "64"},
			{class: "3", json: "", want: "3"},
			{class: "3", json: "5", want: "5"},
			{json: "65", err: "maxWays: 65, allowed are 1 to 64"},
			{json: "-1", err: "maxWays: -1, allowed are 1 to 64"},
			{json: `"3"`, err: "maxWays: want a whole number, not a string"},
			{json: "1.5", err: "maxWays: want a whole number, not a number 1.5"},
			{json: "9223372036854775808", err: "maxWays: want a whole number, not a number 9223372036854775808"},
		},
		"locked": lists("maxWays", "bandwidth", "cpus, maxWays, ways, bandwidth"),
	}
}

const label = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character " +
	"(e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"

func TestEveryFieldOfACacheConfig(t *testing.T) {
	testEveryField(t, cacheHead, cacheFields(), CacheConfig.DecodeOver)
}

func TestCapacitiesThatARequestForACacheMustNotAskFor(t *testing.T) {
	const locked = `, allowed is "the default of the pool", because DeviceClass "gold" locks this field`
	for _, row := range []struct {
		config CacheConfig
		asked  string // amounts by name
		want   string
	}{
		{CacheConfig{}, "ways=4 bandwidthPercent=40", ""},
		{CacheConfig{MaxWays: 4}, "ways=4", ""},
		{CacheConfig{MaxWays: 4}, "bandwidthPercent=40", ""},
		{CacheConfig{MaxWays: 4}, "ways=5", "maxWays: 4, allowed are the 5 ways that the request asks for, or more"},
		{CacheConfig{MaxWays: 4}, "ways=1e300000000", "maxWays: 4, allowed are the 1e300000000 ways that the request asks for, or more"},
		{CacheConfig{Locked: []string{"ways"}}, "bandwidthPercent=40", ""},
		{CacheConfig{Locked: []string{"ways"}}, "ways=4", `ways: "4"` + locked},
		{CacheConfig{Locked: []string{"bandwidth"}}, "ways=4 bandwidthPercent=40", `bandwidthPercent: "40"` + locked},
		{CacheConfig{Locked: []string{"bandwidth"}}, "bandwidthMBps=1k", `bandwidthMBps: "1k"` + locked},
		{CacheConfig{Locked: []string{"maxWays"}}, "ways=4", ""},
	} {
		asked := map[resourceapi.QualifiedName]resource.Quantity{}
		for _, part := range strings.Fields(row.asked) {
			name, amount, _ := strings.Cut(part, "=")
			asked[resourceapi.QualifiedName(name)] = resource.MustParse(amount)
		}
		err := row.config.CheckRequest("gold", asked)
		var lock *LockedError
		if got := fmt.Sprint(err); (err != nil || row.want != "") && got != row.want || errors.As(err, &lock) != strings.Contains(row.want, "gold") {
			t.Errorf("%+v, %s: error %v, want %q", row.config, row.asked, err, row.want)
		}
	}
}

func TestCacheIsForTheCPUsOfOneRequest(t *testing.T) {
	for _, row := range []struct{ cpus, zones, want, problem string }{
		{zones: "main", want: "main"},
		{zones: "main/near", want: "main/near"},
		{zones: "main/near main/far", want: "main/near"},
		{cpus: "b", zones: "a b", want: "b"},
		{cpus: "b", zones: "a bb b/x", want: "b/x"},
		{zones: "a b/x", problem: `cpus: "", allowed are the requests of the claim for zones: a, b`},
		{cpus: "c", zones: "a b/x b/y", problem: `cpus: "c", allowed are the requests of the claim for zones: a, b`},
		{cpus: "c", zones: "a", problem: `cpus: "c", allowed are the requests of the claim for zones: a`},
		{problem: `cpus: "", but no request of the claim is for a zone: a cache is for CPUs of the same claim`},
		{cpus: "c", problem: `cpus: "c", but no request of the claim is for a zone: a cache is for CPUs of the same claim`},
	} {
		got, err := CacheConfig{CPUs: row.cpus}.ZoneRequest(strings.Fields(row.zones))
		if problem := fmt.Sprint(err); got != row.want || (err != nil || row.problem != "") && problem != row.problem {
			t.Errorf("cpus %q of %q: %q, %v; want %q, %s", row.cpus, row.zones, got, err, row.want, row.problem)
		}
	}
}
