package fleet

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	flowcontrol "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
)

// FlowControl gives the requests of the daemons a share of the API server of their own.
type FlowControl struct {
	Level  flowcontrol.PriorityLevelConfiguration
	Schema flowcontrol.FlowSchema
}

// ReadFlowControl reads the two objects from YAML. Their order does not matter.
func ReadFlowControl(text string) (c FlowControl, err error) {
	for document := range strings.SplitSeq(text, "\n---\n") {
		var what metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(document), &what); err != nil {
			return c, err
		}
		switch what.Kind {
		case "PriorityLevelConfiguration":
			err = yaml.UnmarshalStrict([]byte(document), &c.Level)
		case "FlowSchema":
			err = yaml.UnmarshalStrict([]byte(document), &c.Schema)
		default:
			err = fmt.Errorf("%q is none of the two objects", what.Kind)
		}
		if err != nil {
			return c, err
		}
	}
	if c.Level.Name == "" || c.Schema.Spec.PriorityLevelConfiguration.Name != c.Level.Name {
		return c, fmt.Errorf("flow schema %q is not of priority level %q", c.Schema.Name, c.Level.Name)
	}
	return c, nil
}

// Pair is all daemons starting twice, without and with the flow control.
type Pair struct{ Without, With Phase }

// Starts has all daemons start on nodes without slices, in pairs. Which of a pair comes first
// takes turns.
func (f *Fleet) Starts(ctx context.Context, c FlowControl, pairs int) (list []Pair, err error) {
	on := false
	for i := range pairs {
		var pair Pair
		for _, with := range []bool{i%2 == 1, i%2 == 0} {
			phase, name, set := &pair.Without, "without", f.removeFlowControl
			if with {
				phase, name, set = &pair.With, "with", f.addFlowControl
			}
			if with != on {
				if err := set(ctx, c); err != nil {
					return nil, err
				}
				on = with
			}
			if err := errors.Join(f.stop(ctx, f.Nodes), f.each(ctx, f.Nodes, f.deleteSlices), sleep(ctx, settle)); err != nil {
				return nil, err
			}
			*phase, err = f.measure(ctx, Phase{Name: fmt.Sprintf("start %s flow control, pair %d of %d", name, i+1, pairs), Daemons: len(f.Nodes)},
				func(ctx context.Context) ([]time.Duration, error) { return f.start(ctx, f.Nodes) })
			if err != nil {
				return nil, err
			}
		}
		list = append(list, pair)
	}
	return list, nil
}

func (f *Fleet) addFlowControl(ctx context.Context, c FlowControl) error {
	if _, err := f.admin.FlowcontrolV1().PriorityLevelConfigurations().Create(ctx, &c.Level, metav1.CreateOptions{}); err != nil {
		return err
	}
	schema, err := f.admin.FlowcontrolV1().FlowSchemas().Create(ctx, &c.Schema, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return f.waitForSchema(ctx, func(uid types.UID) bool { return uid == schema.UID })
}

func (f *Fleet) removeFlowControl(ctx context.Context, c FlowControl) error {
	schemas := f.admin.FlowcontrolV1().FlowSchemas()
	schema, err := schemas.Get(ctx, c.Schema.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := schemas.Delete(ctx, c.Schema.Name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	if err := f.waitForSchema(ctx, func(uid types.UID) bool { return uid != schema.UID }); err != nil {
		return err
	}
	return f.admin.FlowcontrolV1().PriorityLevelConfigurations().Delete(ctx, c.Level.Name, metav1.DeleteOptions{})
}

// waitForSchema waits until the API server counts the daemons' requests to a FlowSchema that
// is right.
func (f *Fleet) waitForSchema(ctx context.Context, right func(types.UID) bool) error {
	client, err := rest.HTTPClientFor(f.daemons)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, f.Stall)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.daemons.Host+"/api/v1/namespaces/"+Namespace+"/configmaps?limit=1", nil)
		if err != nil {
			return err
		}
		answer, err := client.Do(request)
		if err != nil {
			return fmt.Errorf("ask for the FlowSchema of the daemons: %w", err)
		}
		_ = answer.Body.Close()
		if right(types.UID(answer.Header.Get(flowcontrol.ResponseHeaderMatchedFlowSchemaUID))) {
			return nil
		}
		if err := sleep(ctx, pollPeriod); err != nil {
			return fmt.Errorf("wait for the FlowSchema of the daemons: %w", err)
		}
	}
}
