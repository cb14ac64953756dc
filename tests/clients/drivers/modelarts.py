"""Drives a server with the official ModelArts SDK, unmodified: environment variables only.

Run by the SDK's own interpreter. Prints what each call gave as one JSON object.
"""

import json
import os
import sys
import time
import urllib.request

from huaweicloudsdkcore.exceptions.exceptions import ClientRequestException
from huaweicloudsdkmodelarts.v1 import *
from huaweicloudsdkmodelarts.v1.region.modelarts_region import ModelArtsRegion

found = {}
PATIENCE_S = 90


def client():
    region = ModelArtsRegion.value_of(os.environ["TEST_REGION"])
    return ModelArtsClient.new_builder().with_region(region).build()


def create(name, command):
    body = Job(
        kind="job",
        metadata=JobMetadata(name=name, description="driven", workspace_id="0"),
        algorithm=JobAlgorithm(
            command=command,
            parameters=[Parameters(name="greeting", value="你好 world")],
            environments={"DRIVEN_BY": "sdk"},
        ),
        spec=Spec(resource=SpecResource(flavor_id=os.environ["TEST_FLAVOR"], node_count=1)),
    )
    return sdk.create_training_job(CreateTrainingJobRequest(body=body))


def until(job_id, *phases):
    ends = time.time() + PATIENCE_S
    while time.time() < ends:
        request = ShowTrainingJobDetailsRequest(training_job_id=job_id)
        job = sdk.show_training_job_details(request)
        if job.status.phase in phases:
            return job
        time.sleep(0.1)
    raise SystemExit(f"{job_id} is {job.status.phase}, not {phases}")


def plain(response):
    return json.loads(str(response))


sdk = client()
job = create("driven-1", "printf '%s\\n' \"$DRIVEN_BY\" && echo done")
found["created"] = plain(job)
job_id = job.metadata.id
found["completed"] = plain(until(job_id, "Completed", "Failed"))

task = {"training_job_id": job_id, "task_id": "worker-0"}
found["preview"] = plain(
    sdk.show_training_job_logs_preview(ShowTrainingJobLogsPreviewRequest(**task))
)
found["metrics"] = plain(sdk.show_training_job_metrics(ShowTrainingJobMetricsRequest(**task)))
found["events"] = plain(
    sdk.list_training_job_events(ListTrainingJobEventsRequest(job_id, limit=100))
)
found["tasks"] = plain(sdk.list_training_job_tasks(ListTrainingJobTasksRequest(job_id)))
found["flavors"] = plain(
    sdk.show_training_job_flavors(ShowTrainingJobFlavorsRequest(flavor_type="CPU"))
)
found["engines"] = plain(sdk.show_training_job_engines(ShowTrainingJobEnginesRequest()))
if hasattr(sdk, "show_training_job_logs_from_aom"):
    request = ShowTrainingJobLogsFromAomRequest(**task, order="asc", base_line="")
    found["lines"] = plain(sdk.show_training_job_logs_from_aom(request))
if hasattr(sdk, "show_obs_url_of_training_job_logs"):
    request = ShowObsUrlOfTrainingJobLogsRequest(**task)
    url = sdk.show_obs_url_of_training_job_logs(request).obs_url
    with urllib.request.urlopen(url, timeout=30) as response:
        found["downloaded"] = response.read().decode()

filters = [Filter(key="name", operator="in", value=["driven-1"])]
search = JobSearches(offset=0, limit=10, sort_by="create_time", order="desc", filters=filters)
found["listed"] = plain(sdk.list_training_jobs(ListTrainingJobsRequest(body=search)))

described = globals().get("JobUpdateRequestBody") or globals()["JobDescription"]
sdk.change_training_job_description(
    ChangeTrainingJobDescriptionRequest(job_id, body=described(description="changed"))
)
found["described"] = plain(until(job_id, "Completed"))["metadata"]["description"]

second = create("driven-2", "sleep 600 #").metadata.id
until(second, "Running")
stopped = sdk.stop_training_job(
    StopTrainingJobRequest(second, body=JobActionType(action_type="terminate"))
)
found["stopping"] = stopped.status.phase
found["terminated"] = plain(until(second, "Terminated"))
for each in (job_id, second):
    sdk.delete_training_job(DeleteTrainingJobRequest(training_job_id=each))
try:
    sdk.show_training_job_details(ShowTrainingJobDetailsRequest(training_job_id=job_id))
except ClientRequestException as error:
    found["deleted"] = [error.status_code, error.error_code, error.error_msg, error.request_id]

images = sdk.list_image(ListImageRequest(type="BUILD_IN", limit=50))
found["images"] = plain(images)
found["image"] = plain(sdk.show_image(ShowImageRequest(id=images.data[0].id)))
try:
    sdk.delete_image(DeleteImageRequest(id=images.data[0].id))
except ClientRequestException as error:
    found["built in"] = [error.status_code, error.error_msg]

os.environ["HUAWEICLOUD_SDK_SK"] = "wrong"
try:
    sdk = client()
    sdk.show_training_job_engines(ShowTrainingJobEnginesRequest())
except ClientRequestException as error:
    found["wrong secret"] = [error.status_code, error.error_code, error.error_msg]

json.dump(found, sys.stdout)
