{{- define "dra-driver-numa.webhook" -}}
{{ include "dra-driver-numa.fullname" . }}-webhook
{{- end }}

{{/* What makes and renews the webhook's certificate. */}}
{{- define "dra-driver-numa.webhook.renewer" -}}
{{ include "dra-driver-numa.fullname" . }}-webhook-renewer
{{- end }}

{{/* What makes the templates of translated pods. */}}
{{- define "dra-driver-numa.webhook.templates" -}}
{{ include "dra-driver-numa.fullname" . }}-templates
{{- end }}

{{/* Labels and annotations of a webhook configuration. */}}
{{- define "dra-driver-numa.webhook.metadata" -}}
labels:
  {{- include "dra-driver-numa.labels" (list . "webhook") | nindent 2 }}
{{- with merge (dict) .Values.webhook.certificate.annotations .Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "dra-driver-numa.webhook.service" -}}
{{- with .Values.webhook.certificate.caBundle -}}
caBundle: {{ b64enc . }}
{{ end -}}
service:
  name: {{ include "dra-driver-numa.webhook" . }}
  namespace: {{ include "dra-driver-numa.namespace" . }}
{{- end }}

{{/* How the webhook is asked about claims, templates and classes. Generated claims are known
by their creator, because a tenant can write any annotation. */}}
{{- define "dra-driver-numa.webhook.objects" -}}
admissionReviewVersions: [v1]
sideEffects: None
timeoutSeconds: 3
clientConfig:
  {{- include "dra-driver-numa.webhook.service" . | nindent 2 }}
    path: /validate
rules:
  # What they say of devices never changes.
  - apiGroups: [resource.k8s.io]
    apiVersions: [v1]
    resources: [resourceclaims, resourceclaimtemplates]
    operations: [CREATE]
  - apiGroups: [resource.k8s.io]
    apiVersions: [v1]
    resources: [deviceclasses]
    operations: [CREATE, UPDATE]
matchConditions:
  # The chart's own classes come with the webhook, which does not answer yet.
  - name: is-not-of-the-chart
    expression: request.kind.kind != "DeviceClass" || !object.metadata.?name.orValue("").endsWith(".dra.numa")
  - name: is-not-generated
    expression: request.kind.kind != "ResourceClaim" || !(request.userInfo.username in {{ .Values.webhook.claimControllers | toJson }})
{{- end }}

{{- define "dra-driver-numa.webhook.hasParameters" -}}
(request.kind.kind == "DeviceClass" ? object.spec.?config : request.kind.kind == "ResourceClaim" ? object.spec.?devices.?config : object.spec.spec.?devices.?config).orValue([]).exists(c, c.?opaque.?driver.orValue("") == "dra.numa")
{{- end }}

{{/* Whether requests must include all that claims may hold: "true" or nothing. */}}
{{- define "dra-driver-numa.webhook.enforces" -}}
{{ if eq (toString .Values.webhook.mirrorRequests) "enforce" }}true{{ end }}
{{- end }}

{{/* Whether pods are changed: "true" or nothing. */}}
{{- define "dra-driver-numa.webhook.mutates" -}}
{{ if or .Values.webhook.mirrorRequests .Values.webhook.translate.enabled }}true{{ end }}
{{- end }}

{{/* How the webhook is asked for translations. A pod that nobody could change later must not
pass untranslated: nothing else keeps other pods off its CPUs. */}}
{{- define "dra-driver-numa.webhook.translates" -}}
admissionReviewVersions: [v1]
sideEffects: None
failurePolicy: Fail
# Another webhook may make a pod Guaranteed, and a second time changes nothing.
reinvocationPolicy: IfNeeded
timeoutSeconds: 3
clientConfig:
  {{- include "dra-driver-numa.webhook.service" . | nindent 2 }}
    path: /translate
rules:
  - apiGroups: [""]
    apiVersions: [v1]
    resources: [pods]
    operations: [CREATE]
matchConditions:
  - name: has-no-claims
    expression: "!has(object.spec.resourceClaims)"
{{- end }}

{{/* A map of twins as a flag has it, in the order of the keys. */}}
{{- define "dra-driver-numa.webhook.twins" -}}
{{- $list := list -}}
{{- range $name, $class := . }}{{ $list = append $list (printf "%s=%s" $name $class) }}{{ end -}}
{{- join "," $list -}}
{{- end }}
