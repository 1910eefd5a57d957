{{/* Labels that the chart adds to each object. Selectors and pods have those of the manifests only. */}}
{{- define "certroll.chartLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* labels and annotations of an object: (list $ COMPONENT), where COMPONENT may be "". */}}
{{- define "certroll.metadata" -}}
{{- $root := index . 0 -}}
labels:
  app.kubernetes.io/name: certroll
  {{- with index . 1 }}
  app.kubernetes.io/component: {{ . }}
  {{- end }}
  {{- include "certroll.chartLabels" $root | nindent 2 }}
{{- with $root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "certroll.selector" -}}
app.kubernetes.io/name: certroll
app.kubernetes.io/component: {{ . }}
{{- end }}

{{/* (list $ IMAGE) */}}
{{- define "certroll.image" -}}
{{- $root := index . 0 }}
{{- with index . 1 }}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $root.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{/* A namespace of the manifests, as this release calls it: (list $ NAME). */}}
{{- define "certroll.namespace" -}}
{{- $root := index . 0 }}
{{- $name := index . 1 }}
{{- if eq $name "certroll-system" }}{{ $root.Release.Namespace }}
{{- else if eq $name "certroll-nodes" }}{{ $root.Values.nodeAgent.namespace.name }}
{{- else }}{{ $name }}
{{- end }}
{{- end }}

{{/*
One object of the manifests with this release's namespaces, labels and annotations: (list $ OBJECT). Namespaces are replaced in
the metadata and in the subjects of bindings; the manifests name them nowhere else. What the object has itself counts before
commonLabels and commonAnnotations.
*/}}
{{- define "certroll.object" -}}
{{- $root := index . 0 }}
{{- $object := index . 1 }}
{{- $meta := $object.metadata }}
{{- if $meta.namespace }}
{{- $_ := set $meta "namespace" (include "certroll.namespace" (list $root $meta.namespace)) }}
{{- end }}
{{- range $object.subjects }}
{{- $_ := set . "namespace" (include "certroll.namespace" (list $root .namespace)) }}
{{- end }}
{{- $_ := set $meta "labels" (merge ($meta.labels | default dict) (include "certroll.chartLabels" $root | fromYaml)) }}
{{- with $root.Values.commonAnnotations }}
{{- $_ := set $meta "annotations" (merge ($meta.annotations | default dict) .) }}
{{- end }}
{{- toYaml $object }}
{{- end }}

{{/* The same with labels of the values, by which others select it; they count before the object's own: (list $ OBJECT LABELS). */}}
{{- define "certroll.labelled" -}}
{{- $meta := (index . 1).metadata }}
{{- $_ := set $meta "labels" (merge (deepCopy (index . 2)) ($meta.labels | default dict)) }}
{{- include "certroll.object" . }}
{{- end }}

{{/* All objects of a file of manifests/: (list $ FILE). */}}
{{- define "certroll.objects" -}}
{{- $root := index . 0 }}
{{- range splitList "\n---\n" ($root.Files.Get (printf "files/manifests/%s" (index . 1))) }}
---
{{ include "certroll.object" (list $root (fromYaml .)) }}
{{- end }}
{{- end }}
