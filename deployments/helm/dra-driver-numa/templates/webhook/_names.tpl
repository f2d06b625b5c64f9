{{- define "dra-driver-numa.webhook" -}}
{{ .Chart.Name }}-webhook
{{- end }}

{{/* What the Deployment selects by: never changes, and is not the DaemonSet's. */}}
{{- define "dra-driver-numa.webhook.selector" -}}
app.kubernetes.io/name: {{ include "dra-driver-numa.webhook" . }}
{{- end }}

{{- define "dra-driver-numa.webhook.labels" -}}
{{ include "dra-driver-numa.webhook.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "dra-driver-numa.webhook.service" -}}
service:
  name: {{ include "dra-driver-numa.webhook" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}
