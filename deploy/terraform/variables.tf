variable "project" {
  description = "The Google Cloud project."
  type        = string
}

variable "region" {
  description = "Where the jobs run and the bucket lies, as europe-west4."
  type        = string
}

variable "bucket" {
  description = "The name of the bucket for dumps, releases, templates and temporary files; it is made here."
  type        = string
}

variable "repository" {
  description = "The Artifact Registry repository for the image that deploy/dataflow/build_and_launch.sh pushes; it is made here."
  type        = string
  default     = "maskmill"
}

variable "template" {
  description = "The Flex Template below gs://BUCKET/templates/, as build_and_launch.sh names it."
  type        = string

  validation {
    condition     = can(regex("^maskmill-[0-9A-Za-z._-]+\\.json$", var.template))
    error_message = "A template is named maskmill-TAG.json."
  }
}

variable "build" {
  description = "The template's parameters (deploy/dataflow/metadata.json), without output and watch_source."
  type        = map(string)

  validation {
    condition     = can(var.build["watch_wiki"])
    error_message = "Name the wiki whose dumps are built: watch_wiki = \"enwiki\"."
  }

  validation {
    condition     = length(setintersection(keys(var.build), ["output", "watch_source"])) == 0
    error_message = "main.tf sets output and watch_source."
  }
}

variable "schedule" {
  description = "When to look for a new dump, in cron's words and UTC."
  type        = string
  default     = "23 */6 * * *"
}

variable "machine_type" {
  description = "The workers' machines; deploy/dataflow/README.md says how much memory a process needs."
  type        = string
  default     = "n2-standard-4"
}

variable "max_workers" {
  description = "How many workers at most."
  type        = number
  default     = 32
}

variable "subnetwork" {
  description = "The workers' subnetwork, as regions/REGION/subnetworks/NAME, with Private Google Access; null: the default one."
  type        = string
  default     = null
}
