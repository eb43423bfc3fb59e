package authz

import rego.v1

http := input.attributes.request.http

roles := {"anna": "admin", "bert": "reader"}

user := http.headers["x-user"]

default decision := {"allow": false, "status": 403, "body": "nobody I know", "headers": {"x-decided-by": "opa"}, "metadata": {"user": "unknown"}}

decision := {
	"allow": true,
	"headers": {"x-role": roles[user]},
	"remove": ["x-forged"],
	"response_headers": {"x-decided-by": "opa"},
	"query": {"role": roles[user]},
	"unquery": ["secret"],
	"metadata": {"user": user},
} if {
	permitted
}

permitted if {
	roles[user] == "admin"
}

permitted if {
	roles[user] == "reader"
	http.method == "GET"
}

permitted if {
	input.attributes.contextExtensions.shop == "blue"
	json.unmarshal(http.body).open == true
}
