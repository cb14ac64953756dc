"""The calls whose exchanges are kept as golden files: every one once, in a fixed order."""

import os

from huaweicloudsdkcore.auth.credentials import BasicCredentials
from huaweicloudsdkcore.exceptions.exceptions import ClientRequestException
from huaweicloudsdkmodelarts.v1 import *

credentials = BasicCredentials(
    os.environ["HUAWEICLOUD_SDK_AK"], os.environ["HUAWEICLOUD_SDK_SK"], os.environ["TEST_PROJECT"]
)
builder = ModelArtsClient.new_builder().with_credentials(credentials)
sdk = builder.with_endpoint(os.environ["TEST_ENDPOINT"]).build()


def job(name):
    return Job(
        kind="job",
        metadata=JobMetadata(
            name=name,
            workspace_id="0",
            description="黄金样本",
            annotations={"job_template": "Template DL", "key_task": "worker"},
        ),
        algorithm=JobAlgorithm(
            code_dir="/danlu/golden/code/",
            boot_file="/danlu/golden/code/train.py",
            parameters=[
                Parameters(name="lr", value="0.1"),
                Parameters(name="note", value="x=y 中"),
            ],
            inputs=[
                Input(
                    name="data_url",
                    access_method="parameter",
                    remote=InputDataInfo(obs=InputDataInfoObs(obs_url="/danlu/golden/data/")),
                )
            ],
            outputs=[
                Output(
                    name=f"train_url_{name[-1]}",
                    remote=Remote(obs=RemoteObs(obs_url=f"obs://danlu/golden/{name}/")),
                )
            ],
            engine=JobEngine(engine_id="default"),
            environments={"KEY": "value"},
        ),
        spec=Spec(
            resource=SpecResource(flavor_id="danlu.cpu.1u", node_count=1),
            log_export_path=LogExportPath(obs_url="/danlu/golden/logs/"),
            auto_stop=AutoStop(time_unit="HOURS", duration=1),
            schedule_policy=SchedulePolicy(priority=2),
        ),
    )


first = sdk.create_training_job(CreateTrainingJobRequest(body=job("golden-1"))).metadata.id
task = {"training_job_id": first, "task_id": "worker-0"}
sdk.show_training_job_details(ShowTrainingJobDetailsRequest(training_job_id=first))
search = JobSearches(
    offset=0,
    limit=10,
    sort_by="create_time",
    order="desc",
    filters=[Filter(key="name", operator="like", value=["golden"])],
)
sdk.list_training_jobs(ListTrainingJobsRequest(body=search))
sdk.show_training_job_logs_preview(ShowTrainingJobLogsPreviewRequest(**task))
sdk.show_training_job_metrics(ShowTrainingJobMetricsRequest(**task))
sdk.list_training_job_events(
    ListTrainingJobEventsRequest(first, offset=0, limit=5, order="desc", level="Info")
)
sdk.list_training_job_tasks(ListTrainingJobTasksRequest(first))
sdk.show_training_job_flavors(ShowTrainingJobFlavorsRequest(flavor_type="CPU"))
sdk.show_training_job_engines(ShowTrainingJobEnginesRequest())
if hasattr(sdk, "show_training_job_logs_from_aom"):
    request = ShowTrainingJobLogsFromAomRequest(**task, base_line="", lines="50", order="desc")
    sdk.show_training_job_logs_from_aom(request)
if hasattr(sdk, "show_obs_url_of_training_job_logs"):
    sdk.show_obs_url_of_training_job_logs(ShowObsUrlOfTrainingJobLogsRequest(**task))
described = globals().get("JobUpdateRequestBody") or globals()["JobDescription"]
sdk.change_training_job_description(
    ChangeTrainingJobDescriptionRequest(first, body=described(description="新描述"))
)
second = sdk.create_training_job(CreateTrainingJobRequest(body=job("golden-2"))).metadata.id
sdk.stop_training_job(StopTrainingJobRequest(second, body=JobActionType(action_type="terminate")))
sdk.show_training_job_details(ShowTrainingJobDetailsRequest(training_job_id=second))
sdk.delete_training_job(DeleteTrainingJobRequest(training_job_id=second))
refused = job("golden-3")
refused.spec.resource.flavor_id = "modelarts.vm.v100"
for call in (
    lambda: sdk.show_training_job_details(ShowTrainingJobDetailsRequest(training_job_id=second)),
    lambda: sdk.create_training_job(CreateTrainingJobRequest(body=refused)),
    lambda: sdk.show_training_job_details(ShowTrainingJobDetailsRequest(training_job_id="a/b")),
):
    try:
        call()
        raise SystemExit("that should have been refused")
    except ClientRequestException:
        continue
