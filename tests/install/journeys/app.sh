hearsay serve lunch.yaml --port 8095 --data data >serve.log 2>&1 &
npm install --offline --no-audit --no-fund --silent $DIST/hearsay-device-*.tgz
curl --silent --fail --output ready --retry 60 --retry-delay 1 --retry-all-errors http://127.0.0.1:8095/ready
$PYTHON -c '
from hearsay_device import Device
with Device("python.device") as device:
    print(device.send("http://127.0.0.1:8095", "lunch", {"dish": "soup"}).status)'
node --input-type=module --eval '
import { Device } from "hearsay-device";
console.log((await new Device("js").send("http://127.0.0.1:8095", "lunch", { dish: "soup" })).status);'
kill %1; wait
