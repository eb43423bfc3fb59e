import type { MessageTable } from './types.ts'

/** Conditions of ProxyPolicies, ProxyBackends and BackendTLSPolicies: PX13xx. */
export const policyMessages = {
  PX1301: {
    title: 'expression does not compile',
    cause:
      'A CEL expression has a syntax error, or calls an unknown function. It fails where it is used: authorization denies, a transformation is skipped. Other parts of the policy are in force.',
    fix: 'Correct the expression at the position that the message names.',
  },
  PX1302: {
    title: 'expression uses a variable that is not available',
    cause: 'A CEL expression is valid, and uses a variable that does not exist at the place where it is evaluated, such as response in a rule for requests.',
    fix: 'Use a variable of that phase, or move the expression. docs/guide/expressions.md lists the variables of each phase.',
  },
  PX1303: {
    title: 'Secret or ConfigMap not found',
    cause: 'An object that a policy or backend refers to does not exist. The part that needs it rejects requests.',
    fix: 'Create the object in the namespace of the policy or backend, or correct the name.',
  },
  PX1304: {
    title: 'Secret or ConfigMap is not usable',
    cause: 'The object exists, and lacks an entry that is needed or holds a certificate or key that does not parse. The part that needs it rejects requests.',
    fix: 'Add or correct the entry that the message names.',
  },
  PX1305: {
    title: 'credentials are skipped',
    cause: 'Some users, password hashes or API keys cannot be read. They are skipped, so that their owners are rejected; the others work.',
    fix: 'Correct the lines or entries that the message names. Lines are named by number, because they hold secrets.',
  },
  PX1306: {
    title: 'no Secret matches the selector',
    cause: 'secretSelector of an API key policy selects no Secret. Every request is rejected.',
    fix: 'Label the Secrets, or correct matchLabels.',
  },
  PX1307: {
    title: 'key set is not available',
    cause: 'The operator has not been able to fetch a remote key set (JWKS) yet. Until then tokens are rejected.',
    fix: 'If it lasts, check backendRef, jwksPath and TLS of the key set, and whether network policies let the operator reach it. The message names the last error.',
  },
  PX1308: {
    title: 'key set is not usable',
    cause: 'The key set is not a JSON Web Key Set, or has no key that can verify signatures. All its tokens are rejected.',
    fix: 'Correct the key set, or the URL that it is fetched from.',
  },
  PX1309: {
    title: 'backend of a key set has no fixed host',
    cause: 'A remote key set refers to a ProxyBackend without static host. The operator cannot fetch from it.',
    fix: 'Refer to a ProxyBackend with spec.static, or to a Service.',
  },
  PX1310: {
    title: 'pattern is not valid',
    cause: 'A regular expression of a prompt guard is not valid RE2 syntax. The guard rejects.',
    fix: 'Correct the pattern. RE2 has no lookaround and no backreferences.',
  },
  PX1311: {
    title: 'agent runtime reference is not valid',
    cause: 'agentRuntimeRef is not the ARN of an agent runtime.',
    fix: 'Copy the ARN of the runtime from the cloud console.',
  },
  PX1312: {
    title: 'guard, credentials or load balancer are not valid',
    cause:
      'policies of a guard service, or mcp.toolGuards, auth.oauth or loadBalancer of a ProxyBackend, have an invalid field. The guard rejects everything; without credentials, no request is sent to the backend; without a valid load balancer, LeastRequest is used.',
    fix: 'Correct the field that the message names.',
  },
  PX1313: {
    title: 'MCP targets are ambiguous',
    cause: 'A selector of MCP targets is invalid, or two targets have one name. Requests to the backend get 500.',
    fix: 'Rename a target, or set annotation proxy.dev/mcp-target-name of a Service.',
  },
  PX1314: {
    title: 'MCP target has authentication of its own',
    cause: 'A target of an MCP backend configures authentication. Clients authenticate to the backend as a whole, so requests are rejected.',
    fix: 'Move the authentication to spec.policies of the backend, or to a ProxyPolicy.',
  },
  PX1315: {
    title: 'policy is not attached to a target',
    cause: 'A target does not exist, has no such section, or is not reached from any Gateway. Other targets of the policy are in force.',
    fix: 'Correct the target. Policies on backends are attached when a route refers to the backend.',
  },
  PX1316: {
    title: 'an older policy overrides fields',
    cause: 'Two policies set one field on the same target. The older one wins.',
    fix: 'Remove the field from one policy, or target a more specific object: a route overrides its Gateway.',
  },
  PX1317: {
    title: 'MCP sessions are not shared by pods',
    cause: 'A stateful MCP backend has targets with SSE transport, whose sessions live in one pod, and a Gateway that reaches it can have several pods.',
    fix: 'Use Streamable HTTP, sessionRouting Stateless, or one replica.',
  },
  PX1318: {
    title: 'paths of an LLM backend are not covered by checks',
    cause: 'Some entries of ai.routes are forwarded without inspection, while guards, token limits or rules of API keys are configured.',
    fix: 'Set ai.unguardedRoutes to Reject, or change the type of the paths that the message names.',
  },
  PX1319: {
    title: 'another BackendTLSPolicy has the target',
    cause: 'Two BackendTLSPolicies name the same target and section. The older one is in force.',
    fix: 'Remove one of them, or use sectionName to name different ports.',
  },
  PX1320: {
    title: 'well-known CA certificates are not supported',
    cause: 'wellKnownCACertificates has a value other than System. Connections to the backend fail.',
    fix: 'Use System, or name CA certificates in caCertificateRefs.',
  },
  PX1321: {
    title: 'source of a plugin is missing',
    cause: 'The ConfigMap of a plugin does not exist, or has no such key. Requests fail, unless `failureMode` is FailOpen.',
    fix: 'Create the ConfigMap, with the key that `source.configMapRef` names. Its namespace is that of the policy, unless `namespace` names another one.',
  },
  PX1322: {
    title: 'source of a plugin has an error',
    cause:
      'The source is not TypeScript or JavaScript, or uses syntax that needs a transformation, such as enums. Data planes keep the last version that they loaded.',
    fix: 'Correct the line that the message names.',
  },
  PX1323: {
    title: 'two tools of an MCP backend have one name for clients',
    cause:
      'Two entries of `tools.overrides` have the same `rename`, or one has the name of another tool. A call could not be routed, so neither tool is offered.',
    fix: 'Rename one of the tools to another name.',
  },
  PX1324: {
    title: 'OpenAPI document is missing',
    cause:
      'The ConfigMap of `openapi` of an MCP target does not exist in the namespace of the backend, or has no such key. The target has no tools; other targets work.',
    fix: 'Create the ConfigMap in the namespace of the backend, with the key that `configMapRef` names.',
  },
  PX1325: {
    title: 'OpenAPI document is not usable',
    cause: 'The document is neither JSON nor YAML, is no OpenAPI 3.0 or 3.1, or exceeds a limit. The target has no tools; other targets work.',
    fix: 'Correct what the message names. Convert Swagger 2.0 to OpenAPI 3, bundle documents in several files into one, and select operations with `include`.',
  },
  PX1326: {
    title: 'parts of an OpenAPI document are not used',
    cause: 'Some operations cannot become tools, or an entry of `include`, `exclude` or `rename` has no operation. The other tools work.',
    fix: 'Correct the operations in the document or leave them out with `exclude`; correct the entry that the message names.',
  },
  PX1327: {
    title: 'budget has an unusable field',
    cause:
      '`onExceeded` of a budget is none of its values, `timeZone` is no time zone, or `quotaService` cannot assign its limits. Until then the budget rejects requests that exceed it, its windows are those of UTC, and `onDisconnect` decides.',
    fix: 'Write `Reject`, `Audit` or `{model: NAME}`, and a name of the IANA time zone database such as `Europe/Berlin`. With `quotaService`, write one limit of requests.',
  },
  PX1328: {
    title: 'price catalog is missing',
    cause: 'The ConfigMap of `ai.priceCatalog` does not exist in the namespace of the policy or backend, or has no such key. Other prices apply.',
    fix: 'Create the ConfigMap in that namespace, with the key that `configMapRef` names.',
  },
  PX1329: {
    title: 'price catalog is not usable',
    cause: 'The document is neither JSON nor YAML, or a field is not that of a price catalog. None of its prices apply; other prices do.',
    fix: 'Correct the field that the message names. Prices are texts in US dollars per million tokens, such as `"2.5"`.',
  },
  PX1333: {
    title: 'pins of MCP tools are missing or not usable',
    cause:
      'The ConfigMap of `toolPins` does not exist in the namespace of the backend, has no such key, or its content is no document of pins. No tool is approved: with Hold and Block, clients see none.',
    fix: 'Write the document with `proxyctl mcp approve` and put it into the ConfigMap, in the namespace of the backend.',
  },
  PX1334: {
    title: 'source of a plugin is a file',
    cause: 'A ProxyPolicy names a file in `source.file` of a plugin. Only config files of the data plane can. Requests fail, unless `failureMode` is FailOpen.',
    fix: 'Put the module into a ConfigMap, for example with `proxyctl plugin build`, and name it in `source.configMapRef`.',
  },
  PX1335: {
    title: 'OpenAPI document cannot be fetched',
    cause:
      'The operator could not fetch the `url` of `openapi` of an MCP target yet: the server cannot be reached (the log of the operator has the cause, PX5009), it redirects, responds with another status than 200, or the response is no OpenAPI document. The target has no tools; other targets work. The fetch is retried.',
    fix: 'Correct the URL, or what the message names. Check that network policies let the operator reach it.',
  },
  PX1341: {
    title: 'plugin may not run in process',
    cause: 'A plugin has isolation InProcess, and the ProxyParameters of the Gateway do not permit it. Requests fail, unless `failureMode` is FailOpen.',
    fix: 'Set `spec.plugins.inProcess: true` in the ProxyParameters of the Gateway or of its GatewayClass if you trust the plugins of all its policies. Or use `isolation: Worker`.',
  },
  PX1342: {
    title: 'data planes cannot load a plugin',
    cause:
      'The module of the plugin throws, its default export is no plugin, `config` does not match `configSchema`, or `setup` fails. A version that was loaded before stays in force; a data plane without one handles requests by `failureMode`.',
    fix: 'Correct the line or the field of `config` that the message names. `proxyctl plugin test` and `plugin bench` show the same errors.',
  },
  PX1343: {
    title: 'image of a plugin is not permitted',
    cause:
      'The source of a plugin is in an image that `plugins.images` of the ProxyParameters of the Gateway does not list. It is not fetched. Requests fail, unless `failureMode` is FailOpen.',
    fix: 'Add the registry or the repository to `spec.plugins.images` in the ProxyParameters of the Gateway or of its GatewayClass if you trust its images: their code runs in data planes.',
  },
  PX1344: {
    title: 'image of a plugin cannot be fetched',
    cause:
      'The operator could not fetch the file of the image of a plugin yet: the registry cannot be reached or its certificate is not trusted (the log of the operator tells which, PX5010), it requires credentials that the operator does not have, the image or the file does not exist, or the content has another digest. Data planes keep the version that they have loaded; others handle requests by `failureMode`. The fetch is retried.',
    fix: 'Correct what the message names. Check that network policies let the operator reach the registry. `controller.pluginRegistries` of the Helm chart names its CA and the credentials; without the chart, PROXY_REGISTRY_CA_FILE and PROXY_REGISTRY_CONFIG_FILE do.',
  },
  PX1345: {
    title: 'MCP target is a command without an image',
    cause:
      'A ProxyBackend has an MCP target with `command` but no `image`, which only config files of the data plane can have. Or it has both, and there is no cluster that could run the image. The target is left out; other targets work.',
    fix: 'Add `image`, so that the operator runs the server as a Deployment. Or run the server yourself, and name its Service.',
  },
  PX1351: {
    title: 'descriptor set of a gRPC target is not usable',
    cause:
      'The ConfigMap of `grpc` of an MCP target does not exist in the namespace of the backend, has no such key, or holds no complete descriptor set. The target has no tools; other targets work.',
    fix: 'Write the set with `protoc --include_imports --descriptor_set_out=FILE`, and the ConfigMap with `kubectl create configmap NAME --from-file=FILE`. Or remove `configMapRef` to use the reflection service of the server.',
  },
  PX1352: {
    title: 'pattern of a gRPC target has no effect',
    cause: 'No unary method of the descriptor set is selected, or an entry of `include` or `exclude` matches none. The other tools work.',
    fix: 'Correct the entry that the message names: it matches `package.Service/Method`. Methods with streams cannot be tools.',
  },
  PX1353: {
    title: 'source of a plugin is in another namespace',
    cause:
      'The ConfigMap of a plugin is in another namespace than its policy, and no ReferenceGrant there permits it. Requests fail, unless `failureMode` is FailOpen.',
    fix: 'Create a ReferenceGrant in the namespace of the ConfigMap, from `group: proxy.dev, kind: ProxyPolicy` and the namespace of the policy to `group: "", kind: ConfigMap`. It lets all who can write those policies run the source in data planes, with their config.',
  },
  PX1356: {
    title: 'key that signs is not usable',
    cause:
      'The entry `key` of the Secret of `a2a.cardSigning`, `auth.jwtSign` or `directResponse.keySet` holds no private key that the gateway can sign with. Requests for agent cards fail with 503, requests to a backend with `jwtSign` and for the key set with 500; other requests work.',
    fix: 'Write an unencrypted private key in PEM: `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.pem`, then `kubectl create secret generic NAME --from-file=key=key.pem`. EC P-256, P-384 and P-521, Ed25519, and RSA of at least 2048 bits are usable.',
  },
  PX1357: {
    title: 'MCP tools are held until they are approved',
    cause:
      'A target of an MCP backend has tools that are new or differ from their pins, and `toolPins.action` is Hold or Block: clients do not see them. With Block, they may see no tool of the target. Condition `ToolsApproved` is False while the last list of the target in a data plane has such tools.',
    fix: 'Look at the tools with `proxyctl mcp diff`, and approve them with `proxyctl mcp approve`, or remove the target. The metric `proxy_mcp_tools_held` has their number.',
  },
  PX1358: {
    title: 'image of an MCP server is not permitted',
    cause:
      'A target of an MCP backend has an `image` that `mcp.images` of the ProxyParameters of its Gateways does not list. Its server is not started, and a Deployment that ran before is deleted. Other targets work.',
    fix: 'Add the registry or the repository to `spec.mcp.images` in the ProxyParameters of the GatewayClass, or of a Gateway in the namespace of the backend, if authors of backends may run its images in the cluster.',
  },
  PX1359: {
    title: 'MCP server is not ready',
    cause:
      'No pod of the Deployment of an MCP target with `image` is ready. This is normal for some seconds after creation. Calls of its tools fail; other targets work.',
    fix: 'If it lasts, the command of the message lists events of the pods: an image that cannot be pulled, a quota, a node of another architecture. `kubectl logs` shows the log of the bridge and the standard error of the server.',
  },
  PX1360: {
    title: 'MCP server cannot be deployed',
    cause:
      'The API server rejected an object of an MCP target with `image`, for example because of a quota, an admission policy, or an object of the same name. The operator retries.',
    fix: 'The message is that of the API server. Correct the ProxyParameters, the policy or the permissions that it names, or delete the object.',
  },
  PX1361: {
    title: 'data planes do not connect to the address of a host',
    cause:
      'A host of a backend is an address, or means one without DNS, such as `localhost` and `127.1`, that data planes refuse to connect to: loopback, link-local, metadata, unspecified, multicast and reserved addresses, IPv6 forms of these, or a management port of the data plane. Requests fail with 503.',
    fix: 'Write the host of the service. If the address is meant, such as that of a sidecar, the owner of the Gateway adds it to `spec.upstreams.addresses` of ProxyParameters. Management ports stay refused.',
  },
  PX1362: {
    title: 'host does not receive the credentials of the data plane',
    cause:
      'A backend uses the cloud identity of the data plane: `auth.gcp`, `auth.aws` or `auth.azure` without `secretRef`, or the default of Azure OpenAI, Vertex AI, Bedrock or AgentCore. Its host is no API host of that cloud, and `upstreams.identityHosts` does not list it. Requests fail with 500.',
    fix: 'Correct the host, or use credentials of a Secret. If the host may receive the identity, the owner of the Gateway adds it to `spec.upstreams.identityHosts` of ProxyParameters.',
  },
  PX1365: {
    title: 'OpenAPI document cannot be refreshed',
    cause:
      'The operator has a document of an MCP target, and at least eight fetches in a row have failed since: the server cannot be reached (the log of the operator has the cause, PX5009), it redirects, responds with another status, or the response is no OpenAPI document. The tools of the last document work.',
    fix: 'Correct what the message names. The fetch is retried every 15 s, and the message disappears when one succeeds.',
  },
  PX1366: {
    title: 'key set cannot be refreshed',
    cause:
      'The operator has a remote key set (JWKS), and at least eight fetches in a row have failed since. The last keys work; tokens with keys that the issuer has added since are rejected.',
    fix: 'Check backendRef, jwksPath and TLS of the key set, and whether network policies let the operator reach it. The fetch is retried every 15 s, and the message disappears when one succeeds.',
  },
  PX1367: {
    title: 'section of a BackendTLSPolicy does not exist',
    cause:
      'sectionName of a targetRef is neither the name nor the number of a port of the Service, or no target or provider of the ProxyBackend has this name, or the target is an InferencePool, which has no sections. No connection uses the policy because of this targetRef.',
    fix: 'Correct sectionName, or remove it: the policy then holds for the whole object.',
  },
  PX1368: {
    title: 'keys of a key set are ignored',
    cause: 'Keys of the key set cannot verify signatures: their type is not supported, or they are not valid. Tokens of the other keys are accepted.',
    fix: 'Nothing, if no token is signed with these keys. Otherwise, let the issuer sign with a key of a type that the message names.',
  },
  PX1369: {
    title: 'transformation gives another prompt with each request',
    cause:
      'An expression of `ai.transformations` uses time, randomness, the port of the client or the id of a request for a field that the model reads. The same conversation then has another history in each request: prompt caches of providers miss, and the newest Claude models reject the thinking of earlier turns.',
    fix: 'Use values that stay the same in a conversation, such as claims of the token or headers of the application. Values for logs belong in the fields `metadata` or `user`.',
  },
  PX1380: {
    title: 'target of a model is no LLM backend',
    cause: 'A target of `ai.models` names a ProxyBackend without `spec.ai`. The target is not used; other targets work.',
    fix: 'Name a ProxyBackend with `spec.ai`, or a Service or InferencePool whose servers implement the API of OpenAI.',
  },
  PX1381: {
    title: 'rule of a model is never reached',
    cause: 'An earlier rule of the model has no condition, or the condition `true`: it matches all requests.',
    fix: 'Put the rule without a condition last, or give it a condition (`when`).',
  },
  PX1382: {
    title: 'target of a model is listed twice',
    cause: 'Two targets of one list have the same backend and model. Requests are divided as if they were different targets.',
    fix: 'Remove one of them, and set the weight of the other to their sum.',
  },
  PX1383: {
    title: 'no target of a model gets requests',
    cause: 'All targets of one list of a model have weight 0. Requests for the model fail with 503, unless a fallback has a target.',
    fix: 'Set a weight above 0 for at least one target of the list.',
  },
  PX1384: {
    title: 'names of models are ambiguous',
    cause: 'A pattern with `*` at its beginning and one of equal length with `*` at its end both match some names. The first in the list is used for these.',
    fix: 'Make one of the patterns longer, or add the names that both match as models of their own.',
  },
  PX1385: {
    title: 'models lead in a circle',
    cause: 'A target of a model is a ProxyBackend whose models lead back to the model. Requests skip the target that closes the circle.',
    fix: 'Remove one of the targets in the circle. Each model should lead to a provider, a Service or an InferencePool.',
  },
  PX1386: {
    title: 'target of a model has no such model',
    cause:
      'A target of a model is a ProxyBackend with `ai.models`, none of which has the name that the target asks for. The target is not used; other targets work.',
    fix: 'Set `model` of the target to a name in `ai.models` of that ProxyBackend. Default: the name of the model itself.',
  },
  PX1387: {
    title: 'policies of a backend with models have no effect',
    cause: 'A ProxyBackend with `ai.models` has policies for connections. The requests are sent with the policies of the targets.',
    fix: 'Move the policies to the ProxyBackends that the targets name, or attach a ProxyPolicy to their Services. Of the policies of a backend with models, only `ai` is used.',
  },
  PX1388: {
    title: 'model has no price under a budget',
    cause:
      'A budget in US dollars is in force for a model that neither `ai.prices` nor a price catalog has. What a request costs is not known: the budget rejects it with 403, and a shadow sends no copies.',
    fix: 'Add the model to `ai.prices`, or to the catalog of `ai.priceCatalog`. Set `unpriced: Allow` in the budget if its requests are free; self-hosted models can have a price of 0.',
  },
  PX1389: {
    title: 'steps of a rollout do not rise',
    cause: 'A step of the rollout of a model has no greater percentage than the step before. The steps are used in their order.',
    fix: 'Give rising percentages, for example `[1, 5, 25, 100]`.',
  },
  PX1390: {
    title: 'body of a response is missing',
    cause:
      'The ConfigMap of a `bodyRef` does not exist in the namespace of the policy, has no such key, or its text is too long. The rule applies with an empty body.',
    fix: 'Create the ConfigMap in that namespace, with the key that `bodyRef` names, of at most 256 KiB.',
  },
} as const satisfies MessageTable

export type PolicyCode = keyof typeof policyMessages
