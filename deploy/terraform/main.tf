# Cloud Scheduler launches the Flex Template, which builds a release of the newest dump in the bucket on Dataflow.
# README.md says what to do first, and what was checked.

locals {
  apis = ["artifactregistry", "cloudscheduler", "compute", "dataflow", "iam", "storage"]

  # Dataflow refuses a second job of a name while the first one runs, so two launches never work at once.
  job_name = "maskmill-${replace(var.build["watch_wiki"], "_", "-")}"

  # projects.locations.flexTemplates.launch
  launch = {
    launchParameter = {
      jobName              = local.job_name
      containerSpecGcsPath = "gs://${google_storage_bucket.data.name}/templates/${var.template}"
      parameters = merge(var.build, {
        output       = "gs://${google_storage_bucket.data.name}/releases-of/${var.build["watch_wiki"]}"
        watch_source = "gs://${google_storage_bucket.data.name}/dumps"
      })
      environment = {
        serviceAccountEmail = google_service_account.worker.email
        tempLocation        = "gs://${google_storage_bucket.data.name}/tmp"
        stagingLocation     = "gs://${google_storage_bucket.data.name}/staging"
        machineType         = var.machine_type
        maxWorkers          = var.max_workers
        diskSizeGb          = 30
        subnetwork          = var.subnetwork
        # Workers need no address on the internet: they reach Google's services over the subnetwork.
        ipConfiguration      = var.subnetwork == null ? "WORKER_IP_UNSPECIFIED" : "WORKER_IP_PRIVATE"
        additionalUserLabels = { application = "maskmill" }
      }
    }
  }
}

resource "google_project_service" "api" {
  for_each = toset(local.apis)

  service            = "${each.key}.googleapis.com"
  disable_on_destroy = false
}

# dumps/ what somebody brings here, in folders as on dumps.wikimedia.org; releases-of/WIKI/ what is built; templates/; staging/ and tmp/ of the jobs.
resource "google_storage_bucket" "data" {
  name                        = var.bucket
  location                    = var.region
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
  force_destroy               = false
  labels                      = { application = "maskmill" }

  # What is removed is removed: an old release would be paid for a week longer, and can be built again.
  soft_delete_policy {
    retention_duration_seconds = 0
  }

  lifecycle_rule {
    condition {
      age            = 14
      matches_prefix = ["staging/", "tmp/"]
    }
    action {
      type = "Delete"
    }
  }

  # The parts of uploads that nobody finished.
  lifecycle_rule {
    condition {
      age = 7
    }
    action {
      type = "AbortIncompleteMultipartUpload"
    }
  }

  depends_on = [google_project_service.api]
}

resource "google_artifact_registry_repository" "images" {
  location      = var.region
  repository_id = var.repository
  format        = "DOCKER"

  depends_on = [google_project_service.api]
}

# The workers, and the machine that launches the template.

resource "google_service_account" "worker" {
  account_id   = "maskmill-worker"
  display_name = "maskmill: Dataflow workers"

  depends_on = [google_project_service.api]
}

resource "google_project_iam_member" "worker" {
  project = var.project
  role    = "roles/dataflow.worker"
  member  = google_service_account.worker.member
}

# Objects of this bucket only, and no rights to the bucket itself.
resource "google_storage_bucket_iam_member" "worker" {
  bucket = google_storage_bucket.data.name
  role   = "roles/storage.objectUser"
  member = google_service_account.worker.member
}

resource "google_artifact_registry_repository_iam_member" "worker" {
  location   = google_artifact_registry_repository.images.location
  repository = google_artifact_registry_repository.images.name
  role       = "roles/artifactregistry.reader"
  member     = google_service_account.worker.member
}

# Cloud Scheduler: it may launch a job as the worker, and read the template. It cannot read or write data.

resource "google_service_account" "scheduler" {
  account_id   = "maskmill-scheduler"
  display_name = "maskmill: launches the template"

  depends_on = [google_project_service.api]
}

resource "google_project_iam_custom_role" "launcher" {
  role_id     = "maskmillLauncher"
  title       = "maskmill: launches Dataflow jobs"
  permissions = ["dataflow.jobs.create", "dataflow.jobs.get"]
}

resource "google_project_iam_member" "launcher" {
  project = var.project
  role    = google_project_iam_custom_role.launcher.id
  member  = google_service_account.scheduler.member
}

resource "google_service_account_iam_member" "scheduler_acts_as_worker" {
  service_account_id = google_service_account.worker.name
  role               = "roles/iam.serviceAccountUser"
  member             = google_service_account.scheduler.member
}

resource "google_storage_bucket_iam_member" "scheduler_reads_templates" {
  bucket = google_storage_bucket.data.name
  role   = "roles/storage.objectViewer"
  member = google_service_account.scheduler.member

  condition {
    title      = "templates"
    expression = "resource.name.startsWith(\"projects/_/buckets/${google_storage_bucket.data.name}/objects/templates/\")"
  }
}

resource "google_cloud_scheduler_job" "watch" {
  name             = local.job_name
  description      = "Builds a maskmill release where there is a new dump."
  region           = var.region
  schedule         = var.schedule
  time_zone        = "Etc/UTC"
  attempt_deadline = "180s"

  retry_config {
    retry_count          = 3
    min_backoff_duration = "60s"
    max_backoff_duration = "600s"
  }

  http_target {
    http_method = "POST"
    uri         = "https://dataflow.googleapis.com/v1b3/projects/${var.project}/locations/${var.region}/flexTemplates:launch"
    headers     = { "Content-Type" = "application/json" }
    body        = base64encode(jsonencode(local.launch))

    oauth_token {
      service_account_email = google_service_account.scheduler.email
      scope                 = "https://www.googleapis.com/auth/cloud-platform"
    }
  }

  depends_on = [
    google_project_iam_member.launcher,
    google_service_account_iam_member.scheduler_acts_as_worker,
    google_storage_bucket_iam_member.scheduler_reads_templates,
  ]
}
