package webhook

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistration "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/accounting"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/translate"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

// The types of other programs that docs/multi-tenancy.md has objects of, with the fields
// that it uses: kube-apiserver 1.37 and Kueue 0.19.
type (
	admissionConfiguration struct {
		metav1.TypeMeta `json:",inline"`
		Plugins         []struct {
			Name          string `json:"name"`
			Configuration struct {
				metav1.TypeMeta  `json:",inline"`
				LimitedResources []struct {
					APIGroup      string   `json:"apiGroup"`
					Resource      string   `json:"resource"`
					MatchContains []string `json:"matchContains"`
				} `json:"limitedResources"`
			} `json:"configuration"`
		} `json:"plugins"`
	}
	kueueConfiguration struct {
		metav1.TypeMeta `json:",inline"`
		Resources       struct {
			DeviceClassMappings []struct {
				Name             corev1.ResourceName   `json:"name"`
				DeviceClassNames []corev1.ResourceName `json:"deviceClassNames"`
			} `json:"deviceClassMappings"`
		} `json:"resources"`
	}
	namedObject struct { // a ResourceFlavor has no more
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
	}
	clusterQueue struct {
		namedObject `json:",inline"`
		Spec        struct {
			NamespaceSelector metav1.LabelSelector `json:"namespaceSelector"`
			ResourceGroups    []struct {
				CoveredResources []corev1.ResourceName `json:"coveredResources"`
				Flavors          []struct {
					Name      string `json:"name"`
					Resources []struct {
						Name         corev1.ResourceName `json:"name"`
						NominalQuota resource.Quantity   `json:"nominalQuota"`
					} `json:"resources"`
				} `json:"flavors"`
			} `json:"resourceGroups"`
		} `json:"spec"`
	}
	localQueue struct {
		namedObject `json:",inline"`
		Spec        struct {
			ClusterQueue string `json:"clusterQueue"`
		} `json:"spec"`
	}
	chartValues struct {
		Webhook struct {
			Enabled        bool   `json:"enabled"`
			MirrorRequests string `json:"mirrorRequests"`
			NetworkPolicy  struct {
				Enabled     bool                           `json:"enabled"`
				IngressFrom []networking.NetworkPolicyPeer `json:"ingressFrom"`
			} `json:"networkPolicy"`
		} `json:"webhook"`
	}
)

// kinds are the kinds of the page, and how many objects of each it has.
func kinds() map[string]struct {
	into  any
	count int
} {
	return map[string]struct {
		into  any
		count int
	}{
		"/":                {&chartValues{}, 1},
		"v1/ResourceQuota": {&corev1.ResourceQuota{}, 2},
		"v1/LimitRange":    {&corev1.LimitRange{}, 1},
		"v1/Namespace":     {&corev1.Namespace{}, 2},
		"batch/v1/Job":     {&batchv1.Job{}, 1},
		"resource.k8s.io/v1/ResourceClaimTemplate":                         {&resourceapi.ResourceClaimTemplate{}, 1},
		"admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy":        {&admissionregistration.ValidatingAdmissionPolicy{}, 2},
		"admissionregistration.k8s.io/v1/ValidatingAdmissionPolicyBinding": {&admissionregistration.ValidatingAdmissionPolicyBinding{}, 2},
		"apiserver.config.k8s.io/v1/AdmissionConfiguration":                {&admissionConfiguration{}, 1},
		"config.kueue.x-k8s.io/v1beta2/Configuration":                      {&kueueConfiguration{}, 1},
		"kueue.x-k8s.io/v1beta2/ResourceFlavor":                            {&namedObject{}, 1},
		"kueue.x-k8s.io/v1beta2/ClusterQueue":                              {&clusterQueue{}, 1},
		"kueue.x-k8s.io/v1beta2/LocalQueue":                                {&localQueue{}, 1},
	}
}

func TestManifestsOfThePageAreDecoded(t *testing.T) {
	want, got := map[string]int{}, map[string]int{}
	kinds := kinds()
	for kind, row := range kinds {
		want[kind] = row.count
	}
	for _, text := range files.YAML(t, "../docs/multi-tenancy.md") {
		meta := decodeLoosely(t, text)
		kind := meta.APIVersion + "/" + meta.Kind
		got[kind]++
		if into := kinds[kind].into; into != nil {
			if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
				t.Errorf("%v in\n%s", err, text)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("objects of the page (-want +got):\n%s", diff)
	}

	// The Job of the page requests what the template of the page holds.
	template, job := kinds["resource.k8s.io/v1/ResourceClaimTemplate"].into.(*resourceapi.ResourceClaimTemplate), kinds["batch/v1/Job"].into.(*batchv1.Job)
	client := cluster(t, nil)
	if _, err := client.ResourceV1().ResourceClaimTemplates(template.Namespace).Create(t.Context(), template, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	known, stop, err := startLookups(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace}, Spec: job.Spec.Template.Spec}
	shares, unresolved := accounting.MostOf(pod, known.during(t.Context()))
	if mirrored := accounting.Mirror(pod, shares); len(shares) != 1 || len(unresolved) > 0 || mirrored.Changed {
		text, _ := json.Marshal(mirrored.Pod.Spec.Containers)
		t.Errorf("shares %v, unresolved %v, mirrored %s", shares, unresolved, text)
	}
	if values := kinds["/"].into.(*chartValues); !values.Webhook.Enabled || values.Webhook.MirrorRequests != "enforce" ||
		!values.Webhook.NetworkPolicy.Enabled || len(values.Webhook.NetworkPolicy.IngressFrom) == 0 {
		t.Errorf("values %+v", values)
	}
}

func decodeLoosely(t *testing.T, text string) (meta metav1.TypeMeta) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &meta); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return meta
}

// The page shows a pod before and after its translation, and the template.
func TestPodOfThePageIsTranslatedAsItSays(t *testing.T) {
	var before, after *corev1.Pod
	var template *resourceapi.ResourceClaimTemplate
	text := ""
	for _, document := range files.YAML(t, "../docs/unchanged-pods.md") {
		switch decodeLoosely(t, document).Kind {
		case "Pod":
			pod := &corev1.Pod{}
			if err := yaml.UnmarshalStrict([]byte(document), pod); err != nil {
				t.Fatal(err)
			}
			if before == nil {
				before, text = pod, document
			} else {
				after = pod
			}
		case "ResourceClaimTemplate":
			template = &resourceapi.ResourceClaimTemplate{}
			if err := yaml.UnmarshalStrict([]byte(document), template); err != nil {
				t.Fatal(err)
			}
		}
	}
	if after == nil || template == nil {
		t.Fatal("the page lacks a pod or a template")
	}
	class := object.Parse[resourceapi.DeviceClass](t,
		`{metadata: {name: gpu.vendor.com}, spec: {extendedResourceName: vendor.com/gpu, selectors: [{cel: {expression: 'device.driver == "gpu.vendor.com"'}}]}}`)
	client := cluster(t, nil)
	if _, err := client.ResourceV1().DeviceClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	how := translation()
	handler := handlerWith(t, client, false, how)
	if diff := cmp.Diff(after, podOfText(t, translatedPod(t, handler, text))); diff != "" {
		t.Errorf("the pod (-page +translated):\n%s", diff)
	}
	translated, err := translate.Pod(before, how.WithTwinsOf([]*resourceapi.DeviceClass{class}))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(template.Spec.Spec, translated.Spec); diff != "" || template.Name != translated.Template {
		t.Errorf("the template (-page +translated):\n%s", diff)
	}
}
