package templates

import (
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
)

// A tenant can make hundreds of templates of a megabyte, also with names of translations.
func TestOnlyWhatIsNeededOfTemplatesIsKept(t *testing.T) {
	template := &resourceapi.ResourceClaimTemplate{}
	template.Name, template.UID, template.ResourceVersion = "numa-0123456789abcdef0123456789abcdef", "u", "7"
	template.Labels, template.Annotations = map[string]string{Label: "true", "a": "b"}, map[string]string{"a": "b"}
	template.Finalizers = []string{"example.com/a"}
	template.Spec.Spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: "a"}}
	kept := keptTemplate(template).(*resourceapi.ResourceClaimTemplate)
	if len(kept.Labels) != 1 || kept.Labels[Label] != "true" || kept.Annotations != nil || kept.Finalizers != nil ||
		kept.UID != "u" || kept.ResourceVersion != "7" || len(kept.Spec.Spec.Devices.Requests) != 1 {
		t.Errorf("kept: %+v", kept)
	}
	template.Spec.Spec.Devices.Requests[0].Name = strings.Repeat("a", mostTemplateBytes)
	if kept := keptTemplate(template).(*resourceapi.ResourceClaimTemplate); kept.Size() > 1<<10 || kept.UID != "u" {
		t.Errorf("kept: %d bytes", kept.Size())
	}
	template.Name = "other"
	if kept := keptTemplate(template); kept != nil {
		t.Errorf("kept: %+v", kept)
	}
}
