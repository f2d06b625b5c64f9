package trial

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// Names of metrics of kube-scheduler. There is a series for each profile and status, or queue.
const (
	extensionPointSum = "scheduler_framework_extension_point_duration_seconds_sum"
	attemptsTotal     = "scheduler_schedule_attempts_total"
	pendingPods       = "scheduler_pending_pods"
)

// preFilter returns for how long the scheduler has run the PreFilter plugins since it started.
func (m Metrics) preFilter(ctx context.Context) (time.Duration, error) {
	page, err := m.read(ctx)
	if err != nil {
		return 0, err
	}
	seconds, err := page.sum(extensionPointSum, `extension_point="PreFilter"`)
	if err == nil && seconds == 0 {
		err = errors.New("no time of PreFilter plugins")
	}
	return time.Duration(seconds * float64(time.Second)), err
}

// waiting is what the scheduler has done with pods that have no node.
type waiting struct {
	attempts int // that found no node, since the scheduler started
	idle     int // pods that wait for an event
	due      int // pods that are tried without one
}

func (m Metrics) waiting(ctx context.Context) (w waiting, err error) {
	page, err := m.read(ctx)
	if err != nil {
		return w, err
	}
	for _, row := range []struct {
		into        *int
		name, label string
	}{
		{&w.attempts, attemptsTotal, `result="unschedulable"`},
		{&w.idle, pendingPods, `queue="unschedulable"`},
		{&w.due, pendingPods, `queue="active"`},
		{&w.due, pendingPods, `queue="backoff"`},
		{&w.due, pendingPods, `queue="gated"`},
	} {
		sum, err := page.sum(row.name, row.label)
		if err != nil {
			return w, err
		}
		*row.into += int(sum)
	}
	return w, nil
}

// page is a page of metrics, as text.
type page string

func (m Metrics) read(ctx context.Context) (_ page, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.URL, nil)
	if err != nil {
		return "", err
	}
	response, err := m.Client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("GET %s: %s", m.URL, response.Status)
	}
	text, err := io.ReadAll(response.Body)
	return page(text), err
}

// sum adds up the series of a metric that have a label.
func (p page) sum(name, label string) (sum float64, err error) {
	for line := range strings.Lines(string(p)) {
		labels, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
		if !strings.HasPrefix(labels, name+"{") || !strings.Contains(labels, label) {
			continue
		}
		number, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("metric %q: %w", line, err)
		}
		sum += number
	}
	return sum, nil
}
