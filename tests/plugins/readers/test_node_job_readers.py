"""Helios and Acme: jobs that say on how many nodes they ran, in the columns that are published."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

DAY = "2020-06-09 18"
HELIOS = (
    "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
    f"1425511,uXBbc,vcJkd,1,1,1,COMPLETED,{DAY}:41:01,{DAY}:41:01,2020-06-10 04:55:09,36848,0\n"
    f"1425512,uVMrF,vchbv,16,64,2,FAILED,{DAY}:41:27,{DAY}:41:30,{DAY}:45:36,246,3\n"
    f"1425513,uzqls,vcpDC,10,7,3,COMPLETED,{DAY}:41:28,{DAY}:41:28,{DAY}:41:38,10,0\n"
    f"1425514,uzqls,vcpDC,1,1,1,CANCELLED,{DAY}:41:28,None,{DAY}:41:29,0,1\n"
    f"1425515,uzqls,vcpDC,1,1,1,RUNNING,{DAY}:41:28,{DAY}:41:28,,0,0\n"
)
SEREN = (
    "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time\n"
    "5778432,u5907,1,8,128,Other,FAILED,2023-03-01 00:18:22+08:00,2023-03-01 00:18:54+08:00,"
    "2023-03-01 00:20:51+08:00,117,32,936.0\n"
)
KALOS = (
    "job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,submit_time,start_time,"
    "end_time,fail_time,stop_time,duration,queue,gpu_time\n"
    "dlctk696s0jbvitv,uf794,8,64,960,1000,100.0,Other,FAILED,2023-05-17 11:00:58+00:00,"
    "2023-05-17 11:01:08+00:00,2023-05-17 11:01:16+00:00,2023-05-17 11:01:16+00:00,,18,10.0,1152.0\n"
)


def test_a_job_of_helios_is_a_pod_on_each_of_its_nodes(read_text: Callable) -> None:
    """Processors that do not divide are rounded up to millicores; GPUs that do not are parts of a node."""
    trace = read_text(HELIOS)
    assert trace.reader == "helios"
    names = ("job_id", "queue", "pods", "request.nvidia.com/gpu", "request.cpu", "gang")
    assert trace.frame.select(names).rows() == [
        ("1425511", "vcJkd", 1, 1, 1_000, False),
        ("1425512", "vchbv", 2, 8, 32_000, True),
        ("1425513", "vcpDC", 2, 5, 3_500, True),
    ]
    assert trace.left_out == {"never started (no start_time)": 1, "not ended (no end_time)": 1}
    assert any(note.startswith("1 job cannot divide their GPUs evenly among nodes") for note in trace.notes)
    assert trace.frame["submit_time"][0] == datetime(2020, 6, 9, 18, 41, 1)
    assert trace.frame["duration"].dt.total_seconds().to_list() == [36_848, 246, 10]
    assert read_text(HELIOS, tenant="user").frame["queue"].to_list() == ["uXBbc", "uVMrF", "uzqls"]


def test_times_of_acme_state_their_offsets(read_text: Callable) -> None:
    """All become UTC."""
    trace = read_text(SEREN)
    (job,) = trace.frame.to_dicts()
    assert (trace.reader, job["queue"], job["user"]) == ("acme", "Other", "u5907")
    assert job["submit_time"] == datetime(2023, 2, 28, 16, 18, 22, tzinfo=UTC)
    assert job["duration"] == timedelta(seconds=117)
    assert read_text(SEREN, tenant="user").frame["queue"].to_list() == ["u5907"]


def test_kalos_runs_from_start_to_end_and_says_memory(read_text: Callable) -> None:
    """Its own column duration counts from the submission."""
    trace = read_text(KALOS)
    (job,) = trace.frame.to_dicts()
    assert job["duration"] == timedelta(seconds=8)
    assert (job["pods"], job["request.nvidia.com/gpu"], job["request.cpu"]) == (8, 8, 120_000)
    assert job["request.memory"] == 1000 * 2**30
    assert trace.notes[0].endswith("for 1 job, the column 'duration' has another value")


def test_faults_name_the_line_and_the_column(faults_of_text: Callable) -> None:
    """A day without a time, a node that is none."""
    text = HELIOS.replace(",1,1,1,COMPLETED,2020-06-09 18:41:01", ",-1,1,x,COMPLETED,2020-06-09", 1)
    assert faults_of_text(text) == [
        "line 2: gpu_num: '-1' is out of range (0 to 1,000,000)",
        "line 2: node_num: 'x' is not a whole number",
        "line 2: submit_time: '2020-06-09' is not a time such as 2017-10-09 07:01:55",
    ]
