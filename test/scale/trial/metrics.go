package trial

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Metrics is the page of metrics of the scheduler.
type Metrics struct {
	Client *http.Client
	URL    string
}

// preFilterSum is the sum of a histogram of kube-scheduler. There is one for each profile and status.
const preFilterSum = `scheduler_framework_extension_point_duration_seconds_sum{extension_point="PreFilter",`

// preFilter returns for how long the scheduler has run the PreFilter plugins since it started.
func (m Metrics) preFilter(ctx context.Context) (sum time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.URL, nil)
	if err != nil {
		return 0, err
	}
	response, err := m.Client.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("GET %s: %s", m.URL, response.Status)
	}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if !strings.HasPrefix(lines.Text(), preFilterSum) {
			continue
		}
		_, value, _ := strings.Cut(lines.Text(), "} ")
		seconds, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: line %q: %w", m.URL, lines.Text(), err)
		}
		sum += time.Duration(seconds * float64(time.Second))
	}
	if sum == 0 && lines.Err() == nil {
		return 0, fmt.Errorf("%s has no time of PreFilter plugins", m.URL)
	}
	return sum, lines.Err()
}
