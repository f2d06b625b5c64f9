{{/* The value of the label app.kubernetes.io/name. */}}
{{- define "dra-driver-numa.name" -}}
{{ .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* What the names of all objects begin with, but those of DeviceClasses. The longest goes on
with -uninstall-check, and no name may have more than 63 characters. Only a release may have
dots in its name: a Service may not. */}}
{{- define "dra-driver-numa.fullname" -}}
{{- $name := include "dra-driver-numa.name" . -}}
{{- $derived := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) -}}
{{ .Values.fullnameOverride | default $derived | replace "." "-" | trunc 47 | trimSuffix "-" }}
{{- end }}

{{/* Where the driver is. */}}
{{- define "dra-driver-numa.namespace" -}}
{{ .Values.namespaceOverride | default .Release.Namespace }}
{{- end }}

{{/* The service account of the daemon. The account "default" is never it: all pods of the
namespace have that one. */}}
{{- define "dra-driver-numa.serviceAccountName" -}}
{{- if not (or .Values.serviceAccount.create .Values.serviceAccount.name) }}
{{- fail "serviceAccount.create=false needs serviceAccount.name" }}
{{- end -}}
{{ .Values.serviceAccount.name | default (include "dra-driver-numa.fullname" .) }}
{{- end }}

{{/* What an object selects the pods of a component by: it never changes after the
installation. Takes a list of root and component. */}}
{{- define "dra-driver-numa.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ include "dra-driver-numa.name" $root | quote }}
app.kubernetes.io/instance: {{ $root.Release.Name | quote }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* The same as the argument of a command. */}}
{{- define "dra-driver-numa.selectorText" -}}
{{- $labels := list -}}
{{- range $name, $value := include "dra-driver-numa.selector" . | fromYaml }}
{{- $labels = append $labels (printf "%s=%s" $name $value) }}
{{- end -}}
{{ join "," $labels }}
{{- end }}

{{/* The labels of pods. No value changes part-of and component, by which kubectl numa and
the documentation find the driver's objects. Takes a list of root and component, and perhaps
labels that come before the common ones. */}}
{{- define "dra-driver-numa.podLabels" -}}
{{ include "dra-driver-numa.selector" . }}
app.kubernetes.io/part-of: dra-driver-numa
{{- with merge (dict) (index (append . dict) 2 | default dict) ((index . 0).Values.commonLabels | default dict) }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The labels of an object. Takes what podLabels takes. */}}
{{- define "dra-driver-numa.labels" -}}
{{- $root := index . 0 -}}
{{ include "dra-driver-numa.podLabels" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
{{- end }}

{{/* Labels and annotations of an object. Takes a list of root and component. */}}
{{- define "dra-driver-numa.metadata" -}}
labels:
  {{- include "dra-driver-numa.labels" . | nindent 2 }}
{{- include "dra-driver-numa.annotations" (index . 0) }}
{{- end }}
{{- define "dra-driver-numa.annotations" -}}
{{- with .Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Labels and annotations of an object that exists only while a hook runs. Takes a dict of
root, component, hook and weight. */}}
{{- define "dra-driver-numa.hookMetadata" -}}
labels:
  {{- include "dra-driver-numa.labels" (list .root .component) | nindent 2 }}
annotations:
  helm.sh/hook: {{ .hook }}
  helm.sh/hook-weight: {{ .weight | quote }}
  helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
  {{- with .root.Values.commonAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* Labels and annotations of the pods of a hook. Takes a list of root and component. */}}
{{- define "dra-driver-numa.hookPodMetadata" -}}
{{- $hooks := (index . 0).Values.hooks -}}
labels:
  {{- include "dra-driver-numa.podLabels" (append . $hooks.podLabels) | nindent 2 }}
{{- with $hooks.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
