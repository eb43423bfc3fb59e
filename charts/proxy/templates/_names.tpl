{{/* Name of every object of the installation. */}}
{{- define "proxy.fullname" -}}
{{- $name := .Release.Name -}}
{{- if .Values.fullnameOverride -}}
{{- $name = .Values.fullnameOverride -}}
{{- else if .Values.nameOverride -}}
{{- $name = printf "%s-%s" .Release.Name .Values.nameOverride -}}
{{- else if not (contains .Chart.Name .Release.Name) -}}
{{- $name = printf "%s-%s" .Release.Name .Chart.Name -}}
{{- end -}}
{{- $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* Cluster-wide objects carry the namespace in their name. */}}
{{- define "proxy.clusterName" -}}
{{- printf "%s-%s" (include "proxy.fullname" .) .Release.Namespace -}}
{{- end -}}

{{- define "proxy.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "proxy.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{- define "proxy.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: controller
{{- end -}}

{{/* The labels that select come last: commonLabels cannot change them. */}}
{{- define "proxy.labels" -}}
{{- $own := dict "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_") "app.kubernetes.io/version" .Chart.AppVersion "app.kubernetes.io/managed-by" .Release.Service -}}
{{- $selector := include "proxy.selectorLabels" . | fromYaml -}}
{{- mergeOverwrite (dict) $own .Values.commonLabels $selector | toYaml -}}
{{- end -}}

{{- define "proxy.podLabels" -}}
{{- mergeOverwrite (dict) .Values.commonLabels (include "proxy.selectorLabels" . | fromYaml) | toYaml -}}
{{- end -}}

{{/* Tag of an image: its own, that of all, that of the release. */}}
{{- define "proxy.tag" -}}
{{- .own | default .root.Values.image.tag | default (printf "v%s" .root.Chart.AppVersion) -}}
{{- end -}}

{{- define "proxy.controllerImage" -}}
{{- $image := .Values.controller.image -}}
{{- $registry := $image.registry | default .Values.image.registry -}}
{{- with $registry }}{{ . }}/{{ end }}{{ $image.repository }}:{{ include "proxy.tag" (dict "own" $image.tag "root" .) }}
{{- end -}}
