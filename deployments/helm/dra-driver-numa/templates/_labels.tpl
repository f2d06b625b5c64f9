{{/* What the DaemonSet selects by: never changes. */}}
{{- define "dra-driver-numa.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
{{- end }}

{{- define "dra-driver-numa.labels" -}}
{{ include "dra-driver-numa.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}
