package kubeletplugin

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
)

func claim(name string, uid types.UID) *resourceapi.ResourceClaim {
	return &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: uid}}
}

func pod(name string, uid types.UID) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: uid}}
}

func recorded(name string, uid types.UID) ledger.Grant {
	return ledger.Grant{Namespace: "default", Name: name, UID: uid}
}

// refuse makes the API server answer a kind of request with the error that why returns
// for the name of the object, unless that is nil.
func refuse(c *fake.Clientset, verb, resource string, why func(name string) error) {
	c.PrependReactor(verb, resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		var name string
		switch action := action.(type) {
		case interface{ GetName() string }:
			name = action.GetName()
		case interface{ GetObject() runtime.Object }:
			name = action.GetObject().(metav1.Object).GetName()
		}
		err := why(name)
		return err != nil, nil, err
	})
}

// outage makes the API server fail a number of times.
func outage(c *fake.Clientset, times int) {
	refuse(c, "get", "resourceclaims", func(string) error {
		if times--; times < 0 {
			return nil
		}
		return errors.New("connection refused")
	})
}

func TestReadClaimsTellsGoneAndRenewedFromTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fake.NewClientset(claim("same", "uid-1"), claim("renewed", "uid-2b"))
		outage(c, 8)
		start := time.Now()
		answers, err := ReadClaims(t.Context(), c, []ledger.Grant{
			recorded("same", "uid-1"), recorded("renewed", "uid-2"), recorded("gone", "uid-3"),
		})
		if err != nil {
			t.Fatal(err)
		}
		if answer := answers["uid-1"]; answer == nil || answer.UID != "uid-1" {
			t.Errorf("the same claim: %v", answer)
		}
		if answer := answers["uid-2"]; answer == nil || answer.UID != "uid-2b" {
			t.Errorf("a claim made anew: %v", answer)
		}
		if answer, asked := answers["uid-3"]; answer != nil || !asked || len(answers) != 3 {
			t.Errorf("a claim that is gone: %v, %t; %d answers", answer, asked, len(answers))
		}
		// 0.25 + 0.5 + 1 + 2 + 4 + 3 * 5 seconds
		if waited, want := time.Since(start), 22750*time.Millisecond; waited != want {
			t.Errorf("waited %s for 8 failures, want %s", waited, want)
		}
	})
}

// What is not known must not look as if it were gone.
func TestReadClaimsWithoutAnswerSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fake.NewClientset(claim("a", "uid-1"))
		answered := false
		refuse(c, "get", "resourceclaims", func(string) error {
			if !answered {
				answered = true
				return nil
			}
			return errors.New("connection refused")
		})
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		answers, err := ReadClaims(ctx, c, []ledger.Grant{recorded("a", "uid-1"), recorded("b", "uid-2"), recorded("c", "uid-3")})
		want := "read claim default/b, 1 of 3 read: connection refused"
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
		if len(answers) != 1 || answers["uid-1"] == nil {
			t.Errorf("answers %v, want only that of uid-1", answers)
		}
	})
}
