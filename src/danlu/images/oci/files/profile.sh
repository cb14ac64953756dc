# Danlu: /etc/profile sets PATH anew for every login; this one is the image's, or the job's.
PATH=${DANLU_PATH:-/opt/danlu/environment/bin:$PATH}
export PATH
