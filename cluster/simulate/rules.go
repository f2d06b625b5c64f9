package simulate

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// Releases of Kubernetes, as 1.minor. A scheduler of another release is simulated like the
// nearest of those from oldestMinor to newestMinor.
const (
	oldestMinor  = 36
	defaultMinor = 37 // of clusters whose version is not known
	newestMinor  = 38
)

// Rules decide how the scheduler of a cluster places pods: those of its release of
// Kubernetes, and its feature gates.
type Rules struct {
	minor int
	gates gates
}

// DefaultRules returns those of Kubernetes 1.37 with its default gates.
func DefaultRules() Rules { return rulesOf(defaultMinor) }

func rulesOf(minor int) Rules {
	minor = min(max(minor, oldestMinor), newestMinor)
	return Rules{minor, gatesOf(minor)}
}

// RulesOf returns the rules of a version of Kubernetes, such as 1.38 or v1.37.2+k3s1, with its
// default gates. Versions before 1.36 have the rules of 1.36, and later ones than 1.38 those
// of 1.38. The error says what the text is not.
func RulesOf(text string) (Rules, error) {
	parsed, err := version.ParseGeneric(strings.TrimSpace(text))
	if err != nil || parsed.Major() != 1 {
		return Rules{}, fmt.Errorf("%q is not a version of Kubernetes, such as 1.%d", text, newestMinor)
	}
	return rulesOf(int(parsed.Minor())), nil
}

// Release returns the release of Kubernetes whose rules they are, such as 1.37.
func (r Rules) Release() string { return fmt.Sprintf("1.%d", r.minor) }

// Observed returns the rules with the feature gates that a cluster reports. It ignores gates
// that do not change placements.
func (r Rules) Observed(gates map[string]bool) Rules { return Rules{r.minor, r.gates.observed(gates)} }

// With returns the rules with a list of feature gates in the format of Kubernetes' flag
// --feature-gates, such as "DRAConsumableCapacity=false,DRAListTypeAttributes=true". A gate
// is off if it depends on a gate that is off. The error says what is wrong with the list,
// and which gates are simulated.
func (r Rules) With(gates string) (Rules, error) {
	set, err := r.gates.with(gates)
	return Rules{r.minor, set}, err
}
