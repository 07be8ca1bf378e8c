output "dumps" {
  description = "Where dumps are looked for: one directory or name with a date in it for each."
  value       = local.launch.launchParameter.parameters.watch_source
}

output "latest" {
  description = "The file that names the latest release."
  value       = "${local.launch.launchParameter.parameters.output}/latest.json"
}

output "worker" {
  description = "The account of the workers; who trains on a release needs roles/storage.objectViewer instead."
  value       = google_service_account.worker.email
}
