"""Plain Python on obs:// names after one line at the top."""

import os
import shutil
import sys

import moxing as mox

mox.file.shift("os", "mox")

data_url, train_url = (argument.split("=", 1)[1] for argument in sys.argv[1:3])
total = 0
for name in os.listdir(data_url):
    path = os.path.join(data_url, name)
    if os.path.isdir(path):
        continue
    assert os.path.exists(path)
    with open(path, "rb") as file:
        total += len(file.read())
if not os.path.exists(train_url):
    os.makedirs(train_url)
with open(os.path.join(train_url, "total.txt"), "w") as file:
    print(total, file=file)
os.makedirs("/cache/model")
with open("/cache/model/m.bin", "wb") as file:
    file.write(b"m" * total)
shutil.copytree("/cache/model", os.path.join(train_url, "model"))
print(sorted(name for _, _, names in os.walk(train_url) for name in names))
