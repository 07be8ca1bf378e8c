# What the plan holds, without an account: terraform init && terraform test
mock_provider "google" {}

variables {
  project  = "my-project"
  region   = "europe-west4"
  bucket   = "my-bucket"
  template = "maskmill-1.json"
  build    = { watch_wiki = "enwiki", examples_vocab_file = "gs://my-bucket/vocab.txt" }
}

run "the_launch" {
  command = plan

  assert {
    condition     = local.launch.launchParameter.parameters.output == "gs://my-bucket/releases-of/enwiki"
    error_message = "A wiki's releases have a directory of their own."
  }

  assert {
    condition     = local.launch.launchParameter.parameters.examples_vocab_file == "gs://my-bucket/vocab.txt"
    error_message = "The build's own parameters reach the template."
  }

  assert {
    condition     = local.launch.launchParameter.containerSpecGcsPath == "gs://my-bucket/templates/maskmill-1.json"
    error_message = "The template lies where build_and_launch.sh puts it."
  }

  assert {
    condition     = google_storage_bucket.data.public_access_prevention == "enforced"
    error_message = "Nobody outside reads the bucket."
  }
}

run "a_build_without_a_wiki_is_refused" {
  command = plan
  variables { build = { examples_vocab_file = "gs://my-bucket/vocab.txt" } }
  expect_failures = [var.build]
}

run "a_build_cannot_write_elsewhere" {
  command = plan
  variables { build = { watch_wiki = "enwiki", output = "gs://other/data" } }
  expect_failures = [var.build]
}
