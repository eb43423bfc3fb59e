import { IMAGE_PREFIX_PATTERN } from '../image.ts'
import { CIDR } from './policies/ip-allow-list.ts'
import { anyObject, choice, integer, list, map, object, ref, string, type Definitions, type Schema } from '../schema.ts'

const SECONDS_OF_A_YEAR = 31536000
const quantity = (description: string): Schema => ({ description, 'x-kubernetes-int-or-string': true })
const overlay = (what: string): Schema => ref('KubernetesResourceOverlay', what)
const images = (example: string, description: string): Schema =>
  list(
    string(`A registry such as \`registry.example.com\`, or a repository or the beginning of its path, such as \`registry.example.com/${example}\`.`, {
      minLength: 1,
      maxLength: 253,
      pattern: IMAGE_PREFIX_PATTERN,
    }),
    description,
    undefined,
    32,
  )
const optionalBool: Schema = { type: 'boolean', description: 'Whether the object or its key may be missing.' }
const keyOf = (what: string): Schema =>
  object(`A key of a ${what}.`, { name: string(`Name of the ${what}.`), key: string('Key to select.'), optional: optionalBool }, ['key'])

/** Also of config files. */
export const sensitiveHeaders: Schema = list(
  string('A name; `*` is any text, as in `x-acme-*`. Upper and lower case are equal.', {
    minLength: 1,
    maxLength: 128,
    pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$",
  }),
  'Names of further headers that hold credentials: their values are `<redacted>` in traces, the live tail and config dumps. Headers with `token`, `secret`, `authorization` and the like in their names always are. Default: none.',
  undefined,
  64,
)

/** Without defaults: the operator applies them when it merges the parameters of GatewayClass and Gateway (operator.md §1). */
export const parametersDefinitions: Definitions = {
  ProxyParametersSpec: object(
    'Deployment settings of data planes. Parameters of a GatewayClass and of a Gateway merge field by field, those of the Gateway take precedence; then overlays apply, that of the GatewayClass first.',
    {
      logging: ref('ProxyLogging'),
      rawConfig: anyObject(
        'Content of the data plane’s config file (see the config reference), merged with the typed fields, which take precedence. Not validated by the API server; the data plane reports errors.',
      ),
      image: ref('Image'),
      env: list(
        ref('EnvVar'),
        'Environment variables of the data plane container; they override those set by the operator. Remove one with `$patch: delete` in the deployment overlay. SESSION_KEY and ADMIN_TOKEN replace the Secrets with session key and admin token that the operator maintains for each Gateway.',
      ),
      resources: ref('ResourceRequirements'),
      shutdown: ref('ShutdownSpec'),
      mesh: ref('MeshSpec'),
      plugins: ref('PluginsSpec'),
      mcp: ref('McpServersSpec'),
      upstreams: ref('UpstreamsSpec'),
      deployment: overlay('Changes to the Deployment.'),
      service: overlay('Changes to the Service.'),
      serviceAccount: overlay('Changes to the ServiceAccount.'),
      podDisruptionBudget: overlay('Creates a PodDisruptionBudget that selects the pods of the data plane, with these changes. Not set: none.'),
      horizontalPodAutoscaler: overlay('Creates a HorizontalPodAutoscaler that scales the Deployment of the data plane, with these changes. Not set: none.'),
    },
  ),
  ProxyLogging: object('Logging of the data plane.', {
    level: string('A level (`error`, `warn`, `info`, `debug`, `trace`), or comma-separated `module=level` pairs. Default: info.'),
    format: choice(['json', 'text'], 'Format of log lines. Default: text.'),
    sensitiveHeaders,
  }),
  Image: object('Image of the data plane. Parts that are not set come from the operator’s settings; an empty string drops the part.', {
    registry: string('Registry host.'),
    repository: string('Repository.'),
    tag: string('Tag. Default: that of this release.'),
    digest: string('Digest, for example `sha256:<digest>`.'),
    pullPolicy: string('`Always`, `IfNotPresent` or `Never`. Default: that of Kubernetes for the tag.'),
  }),
  ShutdownSpec: object(
    'Timing of the shutdown after SIGTERM. Default: 10 and 60.',
    {
      min: integer('Seconds for which new requests are still accepted (CONNECTION_MIN_TERMINATION_DEADLINE).', 0, SECONDS_OF_A_YEAR, { format: 'int64' }),
      max: integer('Seconds after which open connections are closed (TERMINATION_GRACE_PERIOD_SECONDS).', 0, SECONDS_OF_A_YEAR, { format: 'int64' }),
    },
    ['min', 'max'],
    [{ rule: 'self.min <= self.max', message: 'min must be <= max' }],
  ),
  MeshSpec: object('Integration with the Istio service mesh: mTLS to pods of the mesh.', {
    caAddress: string('Address of the mesh CA. Default: `https://istiod.istio-system.svc:15012`.'),
    trustDomain: string('Trust domain. Default: cluster.local.'),
  }),
  PluginsSpec: object('Permissions of plugins (`traffic.plugins` of policies).', {
    inProcess: {
      type: 'boolean',
      description:
        'Whether plugins with `isolation: InProcess` may run. They run in the threads of the data plane, with its rights, and can stop it. Without it they fail. Default: false.',
    },
    images: images('plugins', 'Images that plugins may come from (`source.image`). Other images are not fetched, and their plugins fail. Default: none.'),
  }),
  UpstreamsSpec: object('Destinations of connections for backends and policies that are refused by default.', {
    addresses: list(
      string('IPv4 or IPv6 address, or a range of them as `address/prefix length`.', { minLength: 1, maxLength: 49, pattern: CIDR }),
      'Loopback, link-local, metadata, unspecified, multicast, reserved and translated addresses that connections may go to, such as `127.0.0.1` for a sidecar. The management ports of the data plane stay refused. Default: none in pods, the loopback addresses elsewhere.',
      undefined,
      64,
    ),
    identityHosts: list(
      string('Host name or IP address, or `*.` and a suffix for all names under it.', {
        minLength: 1,
        maxLength: 253,
        pattern: '^(\\*\\.)?[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?$|^[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*$',
      }),
      'Hosts that may receive the credentials of the data plane itself (`auth.aws` and `auth.azure` without secretRef, `auth.gcp`, and the defaults of LLM providers, guards and agent runtimes), besides API hosts of the cloud. Backends of all authors can use them there. Default: none.',
      undefined,
      64,
    ),
  }),
  McpServersSpec: object(
    'MCP servers that the operator starts (`mcp.targets[].image` of backends). Those of a GatewayClass hold for backends of all namespaces, those of a Gateway for backends of its namespace.',
    {
      images: images('mcp', 'Images that may run. Servers of other images are not started. Default: none.'),
      deployment: overlay('Changes to the Deployment of each server. The container of the server is named `server`, the init container `bridge`.'),
      service: overlay('Changes to the Service of each server.'),
      serviceAccount: overlay('Changes to the ServiceAccount of each server.'),
    },
  ),
  KubernetesResourceOverlay: object('Changes to a generated object, applied last.', {
    metadata: object(
      'Labels and annotations, merged with existing ones; for equal keys, those of the Gateway take precedence over those of the GatewayClass.',
      {
        labels: map({ type: 'string' }, 'Labels.'),
        annotations: map({ type: 'string' }, 'Annotations.'),
      },
    ),
    spec: anyObject(
      'A full or partial spec, applied as a strategic merge patch: lists with merge keys (containers by name, tolerations by key) update matching items and append others; `$patch: delete` removes a field or item, `$patch: replace` replaces a map, or a list if it is in the first item. The container of the data plane is named `proxy`.',
    ),
  }),
  EnvVar: object(
    'An environment variable (core/v1 EnvVar).',
    {
      name: string('Name.'),
      value: string('Value. `$(NAME)` expands to another variable, `$$(NAME)` is the literal `$(NAME)`.'),
      valueFrom: object('Where the value comes from instead.', {
        configMapKeyRef: keyOf('ConfigMap'),
        secretKeyRef: keyOf('Secret'),
        fieldRef: object(
          'A field of the pod.',
          { apiVersion: string('Version of the schema that fieldPath is written in. Default: v1.'), fieldPath: string('Path, for example `metadata.name`.') },
          ['fieldPath'],
        ),
        fileKeyRef: object(
          'A key of an environment file in a volume.',
          { volumeName: string('Volume.'), path: string('Path of the file, relative to the volume.'), key: string('Key in the file.'), optional: optionalBool },
          ['volumeName', 'path', 'key'],
        ),
        resourceFieldRef: object(
          'A resource of the container.',
          {
            containerName: string('Container. Default: this one.'),
            resource: string('Resource, for example `limits.cpu`.'),
            divisor: quantity('Unit of the value. Default: 1.'),
          },
          ['resource'],
        ),
      }),
    },
    ['name'],
  ),
  ResourceRequirements: object('Compute resources of the container (core/v1 ResourceRequirements). Default: requests of 100m CPU and 128Mi memory.', {
    limits: map(quantity('Quantity.'), 'Maximum.'),
    requests: map(quantity('Quantity.'), 'Reserved resources. Default: the limits.'),
    claims: list(
      object('A resource claim of the pod.', { name: string('Name of the claim.'), request: string('Request within the claim. Default: all of it.') }, [
        'name',
      ]),
      'Resource claims (dynamic resource allocation).',
      undefined,
      undefined,
      { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] },
    ),
  }),
  ProxyParametersStatus: object('Not used: problems are reported in the conditions of GatewayClass and Gateway.', {}),
}
