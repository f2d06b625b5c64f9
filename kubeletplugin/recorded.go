package kubeletplugin

import (
	"context"
	"fmt"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
)

const (
	claimTimeout   = 5 * time.Second // of one try
	lastClaimRetry = 5 * time.Second // the longest wait between two tries for the same claim
)

// ReadClaims asks the API server for every claim on record. Call it before Start. The
// answer for a UID is the claim that has the recorded name now. It is nil if there is
// none, and has another UID if the claim was deleted and created again. ReadClaims
// tries again, with growing pauses, until it has all answers or ctx ends. If it returns
// an error, it also returns the answers that it has. A claim without an answer may be
// in use.
func ReadClaims(ctx context.Context, client kubernetes.Interface, recorded []ledger.Grant) (map[types.UID]*resourceapi.ResourceClaim, error) {
	answers := make(map[types.UID]*resourceapi.ResourceClaim, len(recorded))
	for _, grant := range recorded {
		claim, err := readClaim(ctx, client, grant)
		if err != nil {
			return answers, fmt.Errorf("read claim %s/%s, %d of %d read: %w", grant.Namespace, grant.Name, len(answers), len(recorded), err)
		}
		answers[grant.UID] = claim
	}
	return answers, nil
}

// readClaim returns the last error once ctx has ended. It tries again after every error
// except not found, because even missing permissions may soon be granted.
func readClaim(ctx context.Context, client kubernetes.Interface, grant ledger.Grant) (*resourceapi.ResourceClaim, error) {
	for retry := firstRetry; ; retry = min(2*retry, lastClaimRetry) {
		claim, err := askForClaim(ctx, client, grant)
		if err == nil {
			return claim, nil
		}
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(retry):
		}
	}
}

// claimWith reads the claim that has the name. It returns nil if there is none, or if its
// UID is another one: the claim was deleted and created again.
func claimWith(ctx context.Context, client kubernetes.Interface, name types.NamespacedName, uid types.UID) (*resourceapi.ResourceClaim, error) {
	claim, err := client.ResourceV1().ResourceClaims(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && claim.UID != uid {
		return nil, nil
	}
	return claim, err
}

func askForClaim(ctx context.Context, client kubernetes.Interface, grant ledger.Grant) (*resourceapi.ResourceClaim, error) {
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	return client.ResourceV1().ResourceClaims(grant.Namespace).Get(ctx, grant.Name, metav1.GetOptions{})
}
