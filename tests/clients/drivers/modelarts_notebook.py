"""Drives a server's notebooks with the official ModelArts SDK, unmodified. Prints what it got."""

import json
import os
import sys
import time

from huaweicloudsdkcore.exceptions.exceptions import ClientRequestException
from huaweicloudsdkmodelarts.v1 import *
from huaweicloudsdkmodelarts.v1.region.modelarts_region import ModelArtsRegion

PATIENCE_S = 120
HOUR_MS = 3600000
found = {}
region = ModelArtsRegion.value_of(os.environ["TEST_REGION"])
sdk = ModelArtsClient.new_builder().with_region(region).build()


def plain(response):
    return json.loads(str(response))


def until(notebook_id, *statuses):
    ends = time.time() + PATIENCE_S
    while time.time() < ends:
        notebook = sdk.show_notebook(ShowNotebookRequest(id=notebook_id))
        if notebook.status in statuses:
            return plain(notebook)
        time.sleep(0.2)
    raise SystemExit(f"{notebook_id} is {notebook.status}: {notebook.fail_reason}")


body = NotebookCreateRequest(
    name="driven-notebook",
    description="driven",
    feature="NOTEBOOK",
    flavor=os.environ["TEST_FLAVOR"],
    image_id="default",
    volume=VolumeMountRequest(category="EFS", ownership="MANAGED", capacity=50),
    endpoints=[EndpointsReq(service="SSH", key_pair_names=["key"])],
    duration=HOUR_MS,
    workspace_id="0",
)
made = sdk.create_notebook(CreateNotebookRequest(body=body))
found["created"] = plain(made)
found["running"] = until(made.id, "RUNNING", "CREATE_FAILED")
found["lease"] = plain(sdk.show_lease(ShowLeaseRequest(id=made.id)))
found["renewed"] = plain(sdk.renew_lease(RenewLeaseRequest(id=made.id, duration=2 * HOUR_MS)))
lease = LeaseReq(duration=3 * HOUR_MS, type="IDLE")
found["idle"] = plain(sdk.renew_lease(RenewLeaseRequest(id=made.id, body=lease)))
found["listed"] = plain(sdk.list_notebooks(ListNotebooksRequest(name="driven", limit=10)))
found["all"] = plain(sdk.list_all_notebooks(ListAllNotebooksRequest(limit=10)))["total"]
found["flavors"] = plain(sdk.list_flavors(ListFlavorsRequest(limit=100)))
found["switchable"] = plain(sdk.show_switchable_flavors(ShowSwitchableFlavorsRequest(id=made.id)))
found["stopping"] = sdk.stop_notebook(StopNotebookRequest(id=made.id)).status
found["stopped"] = until(made.id, "STOPPED")
change = NotebookUpdateRequest(description="changed", image_id="default")
found["changed"] = plain(sdk.update_notebook(UpdateNotebookRequest(id=made.id, body=change)))
found["starting"] = sdk.start_notebook(
    StartNotebookRequest(id=made.id, duration=HOUR_MS, type="TIMING")
).status
found["again"] = until(made.id, "RUNNING", "START_FAILED")
found["deleting"] = sdk.delete_notebook(DeleteNotebookRequest(id=made.id)).status
ends = time.time() + PATIENCE_S
while time.time() < ends:
    try:
        sdk.show_notebook(ShowNotebookRequest(id=made.id))
    except ClientRequestException as error:
        found["deleted"] = [error.status_code, error.error_code, error.error_msg]
        break
    time.sleep(0.2)
json.dump(found, sys.stdout)
