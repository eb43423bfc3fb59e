import { withCode, type MessageCode } from '#api/messages/code.ts'
import { readRuntimeArn } from '#api/arn.ts'
import { findKeySetProblem } from '#api/credentials/key-set.ts'
import { readSigningKey, SIGNING_ENTRY } from '#api/credentials/signing-key.ts'
import { parseDuration } from '#api/duration.ts'
import { SERVER_PORT } from '#api/bridge.ts'
import { findBudgetProblems } from '#api/budget.ts'
import { parsePins } from '#api/mcp-pins/pins.ts'
import { GROUP } from '#api/names.ts'
import { refName, type Schema } from '#api/schema.ts'
import { definitions } from '#api/v1alpha1/definitions.ts'
import type {
  BackendRef,
  ResolvedKeySet,
  ResolvedMcpOpenApi,
  ResolvedMcpToolPins,
  ResolvedPriceCatalog,
  ResolvedSecret,
  ResolvedSecretKey,
  ResolvedSecrets,
  Secret as SecretMessage,
} from '#gen/config/types.ts'
import type { AIModelBackendReference, McpGrpc, McpOpenApi, McpToolPins, PluginConfigMapReference, ResponseBodyReference } from '#gen/v1alpha1/types.ts'
import type { BackendObjectRef } from '../../source/gateway-api.ts'
import { invalidBackend, resolveBackend, type BackendTarget, type ResolvedBackend } from '../common/backend-ref.ts'
import type { Referrer } from '../common/reference-grant.ts'
import { validate } from '../../source/validate.ts'
import type { Context } from '../common/context.ts'
import { checkPattern } from '../common/matches.ts'
import { phaseOf } from '../common/phases.ts'
import { describeRestriction, selectMcpTargets } from './mcp-targets.ts'
import { resolveModelTarget } from './model-targets.ts'
import { readCertificate, readConfigMapAuthority, readOpaque, readSecretAuthority, type Material } from '../common/secret.ts'
import { resolveGrpc } from './grpc-source.ts'
import { readFetched, readOpenApi, type OpenApiSource } from './openapi-source.ts'
import { documentId, findUrlProblem, keySetId, type DocumentReference, type KeySetReference } from './remote-reference.ts'
import { resolvePluginSource, takePluginImage, type PluginImageReference } from './plugin-source.ts'
import { hasEntry, neededEntries } from './secret-entries.ts'
import { takeCommand, type ServerReference } from './commands.ts'
import { badApiKeys, badLines, badPublishedKeys, brokenCredentials, signingOwners } from './credentials.ts'
import { checked, interesting, leaves } from './interesting.ts'
import { readCatalogSource } from './price-catalog.ts'
import { readResponseBody } from './response-body.ts'
import { matchesLabels } from '../../model/selectors.ts'

/** Characters of an expression in a message. */
const MAX_QUOTED = 100

/**
 * A mistake in a body. The data plane fails closed for a bad `reference`. An `expression` has bad syntax. A `variable` or function does not
 * exist where the expression is evaluated, so that it fails there (traffic.md §1). A `selection` is ambiguous. Without a `grant`, servers of other
 * namespaces are not selected.
 */
export interface BodyError {
  readonly path: readonly string[]
  readonly kind: 'reference' | 'expression' | 'variable' | 'selection' | 'grant' | 'document'
  readonly message: string
}

/** A policy or backend body in the config's form (`api/config/resolved.ts`), with all that it leads to. */
export interface ResolvedBody {
  readonly body: object
  readonly errors: readonly BodyError[]
  readonly targets: readonly BackendTarget[]
  readonly secrets: readonly SecretMessage[]
  readonly keySets: readonly KeySetReference[]
  readonly documents: readonly DocumentReference[]
  readonly images: readonly PluginImageReference[]
  readonly servers: readonly ServerReference[]
}

type DocumentSettings = Parameters<typeof readFetched>[1]
type UsableDocument = Extract<OpenApiSource, { message: unknown }> | { readonly invalid: string }

interface RemoteKeySet {
  readonly jwksPath: string
  readonly cacheDuration?: string
  readonly backendRef: Partial<BackendObjectRef>
}
const DEFAULT_CACHE_MS = 300_000
const DEFAULT_REFRESH_MS = 300_000

/** The API server does not check their `policies` where they are written under their neutral names (api/codegen/crd.ts). */
const guardServices = new Set(['ModerationAPI', 'CloudGuardrails', 'ModelArmor'])

/** Guards with a pattern that does not compile. */
const rejectingGuards = { input: [{ regex: { matches: ['('] } }], output: [{ regex: { matches: ['('] } }] }

/** Resolves every reference of `body`, which is a `definition` written in an object of `kind`. */
export function resolveBody(
  context: Context,
  kind: 'ProxyPolicy' | 'ProxyBackend',
  { namespace, name }: { readonly namespace: string; readonly name: string },
  definition: string,
  body: object,
): ResolvedBody {
  const resolver = new Resolver(context, kind, namespace, name, definition)
  // The walk keeps the shape: an object stays an object.
  const resolved = resolver.resolve({ $ref: `#/$defs/${definition}` }, body, [], '') as object
  return {
    body: resolved,
    errors: resolver.errors,
    targets: resolver.targets,
    secrets: resolver.secrets,
    keySets: resolver.keySets,
    documents: resolver.documents,
    images: resolver.images,
    servers: resolver.servers,
  }
}

class Resolver {
  readonly errors: BodyError[] = []
  readonly targets: BackendTarget[] = []
  readonly secrets: SecretMessage[] = []
  readonly keySets: KeySetReference[] = []
  readonly documents: DocumentReference[] = []
  readonly images: PluginImageReference[] = []
  readonly servers: ServerReference[] = []
  readonly #context: Context
  readonly #referrer: Referrer
  readonly #namespace: string
  /** Key of the object. */
  readonly #owner: string
  readonly #definition: string

  constructor(context: Context, kind: string, namespace: string, name: string, definition: string) {
    this.#owner = `${namespace}/${name}`
    this.#definition = definition
    this.#context = context
    this.#referrer = { group: GROUP, kind, namespace }
    this.#namespace = namespace
  }

  /** @param owner `<definition>.<field>` that holds the value */
  resolve(schema: Schema, value: unknown, path: readonly string[], owner: string): unknown {
    if (value === undefined || value === null) return value
    if (schema.$ref !== undefined) {
      const name = refName(schema.$ref)
      if (leaves.has(name)) return this.#replace(name, value, path, owner)
      const target = definitions[name]
      if (!target || !interesting.has(name)) return value
      if (guardServices.has(name)) {
        const broken = this.#checkConnection(value, path)
        if (broken !== undefined) return broken
      }
      const replace = brokenCredentials[name]
      if (replace !== undefined) {
        const invalid = this.#findInvalid(schema, value, path)
        if (invalid !== undefined) return replace(invalid)
      }
      // The default balances too.
      if (name === 'LoadBalancer' && this.#findInvalid(schema, value, path) !== undefined) return undefined
      if (name === 'McpToolGuards') {
        const broken = this.#checkToolGuards(schema, value, path)
        if (broken !== undefined) return broken
      }
      const resolved = this.#children(target, value, path, name)
      if (checked.has(name)) this.#check(name, value as Record<string, unknown>, resolved as Record<string, unknown>, path)
      return resolved
    }
    return this.#children(schema, value, path, owner.split('.')[0] ?? '', owner)
  }

  /** A guard whose connection policies are invalid is one without credentials: it rejects everything. */
  #checkConnection({ policies, ...guard }: { readonly policies?: unknown }, path: readonly string[]): object | undefined {
    if (policies === undefined) return undefined
    const invalid = this.#findInvalid({ $ref: '#/$defs/BackendSimple' }, policies, [...path, 'policies'])
    return invalid === undefined ? undefined : { ...guard, policies: { auth: { secretRef: { invalid } } } }
  }

  /** The first problem of a value that the manifest of its kind does not describe (api/codegen/crd.ts); it is recorded. */
  #findInvalid(schema: Schema, value: unknown, path: readonly string[]): string | undefined {
    const [issue] = validate(schema, value).issues
    return issue && this.#fail([...path, ...issue.path.map(String)], issue.message, 'PX1312')
  }

  /** Guards that are not valid reject everything. */
  #checkToolGuards(schema: Schema, value: unknown, path: readonly string[]): object | undefined {
    return this.#findInvalid(schema, value, path) === undefined ? undefined : rejectingGuards
  }

  #children(schema: Schema, value: unknown, path: readonly string[], definition: string, owner = ''): unknown {
    const { items, properties, additionalProperties } = schema
    if (Array.isArray(value)) return items ? value.map((item, index) => this.resolve(items, item, [...path, String(index)], owner)) : value
    if (typeof value !== 'object' || value === null) return value
    const entries = Object.entries(value).map(([field, child]) => {
      const own = properties?.[field]
      if (own !== undefined) return [field, this.resolve(own, child, [...path, field], `${definition}.${field}`)] as const
      // Values of a map belong to the field that holds the map, whatever their names are.
      return [field, typeof additionalProperties === 'object' ? this.resolve(additionalProperties, child, [...path, field], owner) : child] as const
    })
    return Object.fromEntries(entries)
  }

  /** Records a problem. Returns the message without the code, for the config: data planes show it to clients. */
  #fail(path: readonly string[], message: string, code: MessageCode, kind: BodyError['kind'] = 'reference'): string {
    this.errors.push({ path, message: withCode(message, code), kind })
    return message
  }

  /** The source has validated the object, so each reference has the shape of its definition. */
  #replace(name: string, value: unknown, path: readonly string[], owner: string): unknown {
    switch (name) {
      case 'BackendObjectReference':
        return this.#backend(value as Partial<BackendObjectRef>, path)
      case 'AIModelBackendReference':
        return this.#take(resolveModelTarget(this.#context, this.#referrer, value as AIModelBackendReference), path)
      case 'SecretReference':
        return this.#secret((value as { name: string }).name, path, owner)
      case 'SecretKeyReference':
        return this.#secretKey(value as { name: string; key: string }, path)
      case 'ConfigMapReference': {
        const key = (value as { name: string }).name
        const map = this.#context.snapshot.get('ConfigMap', this.#namespace, key)
        return this.#material(map && readConfigMapAuthority(map), `ConfigMap ${this.#namespace}/${key} not found`, path)
      }
      case 'PluginConfigMapReference': {
        const { message, problem } = resolvePluginSource(this.#context, this.#namespace, value as PluginConfigMapReference)
        if (problem !== undefined) this.#fail(path, problem.text, problem.code)
        return { ...message, owner: this.#owner }
      }
      case 'ResponseBodyReference': {
        const { text, problem } = readResponseBody(this.#context.snapshot, this.#namespace, value as ResponseBodyReference)
        return problem === undefined ? { text } : { invalid: this.#fail(path, problem, 'PX1390', 'document') }
      }
      case 'PriceCatalogReference':
        return this.#priceCatalog(value as { name: string; key: string }, path)
      case 'McpOpenApi':
        return this.#openApi(value as McpOpenApi, path)
      case 'McpGrpc': {
        const { backendRef, ...settings } = value as McpGrpc
        const backend = backendRef && this.#backend(backendRef, [...path, 'backendRef'])
        const { message, problems } = resolveGrpc(this.#context.snapshot, this.#namespace, settings)
        for (const { text, code } of problems) this.#fail(path, text, code, 'document')
        return { ...message, ...(backend && { backend }) }
      }
      case 'McpToolPins':
        return this.#toolPins(value as McpToolPins, path)
      case 'SecretSelector':
        return this.#selectSecrets((value as { matchLabels: Record<string, string> }).matchLabels, path)
      case 'RemoteJWKS':
        return this.#keySet(value as RemoteKeySet, path, owner)
      case 'McpSelector': {
        const { targets, problems, isRestricted } = selectMcpTargets(this.#context, this.#referrer, value)
        for (const problem of problems) this.#fail(path, problem, 'PX1313', 'selection')
        // No names: the selector must not list servers of other namespaces.
        if (isRestricted) this.#fail(path, describeRestriction(this.#referrer), 'PX1202', 'grant')
        this.targets.push(...targets.map(({ service, port }) => ({ kind: 'Service' as const, key: service, port })))
        return { targets }
      }
      default:
        this.#checkExpression(String(value), path, owner)
        return value
    }
  }

  #checkExpression(expression: string, path: readonly string[], owner: string): void {
    const { checkExpression } = this.#context.options
    const problem = checkExpression(expression)
    const quoted = JSON.stringify(expression.length > MAX_QUOTED ? `${expression.slice(0, MAX_QUOTED)}...` : expression)
    if (problem !== undefined) return void this.#fail(path, `${problem} in ${quoted}`, 'PX1301', 'expression')
    const misplaced = checkExpression(expression, phaseOf(this.#definition, path, owner))
    if (misplaced !== undefined) this.#fail(path, `${misplaced} in ${quoted}`, 'PX1302', 'variable')
  }

  #backend(ref: Partial<BackendObjectRef>, path: readonly string[]): BackendRef {
    const { group = '', kind = 'Service', name = '' } = ref
    return this.#take(resolveBackend(this.#context, this.#referrer, { ...ref, group, kind, name }), path)
  }

  #take(resolved: ResolvedBackend, path: readonly string[]): BackendRef {
    if ('fault' in resolved) {
      this.errors.push({ path, message: resolved.fault.message, kind: 'reference' })
      return invalidBackend
    }
    this.targets.push(resolved.target)
    return resolved.ref
  }

  #material(material: Material | undefined, missing: string, path: readonly string[]): ResolvedSecret {
    if (!material?.message) return { invalid: material ? this.#fail(path, material.error, 'PX1304') : this.#fail(path, missing, 'PX1303') }
    this.secrets.push(material.message)
    return { secret: material.message.key }
  }

  #priceCatalog({ name, key }: { readonly name: string; readonly key: string }, path: readonly string[]): ResolvedPriceCatalog {
    const map = this.#context.snapshot.get('ConfigMap', this.#namespace, name)
    const shown = `ConfigMap ${this.#namespace}/${name}`
    const source = map && readCatalogSource(map, key)
    if (source === undefined) {
      const missing = map === undefined ? `${shown} not found` : `${shown} has no ${key}`
      return { invalid: this.#fail(path, `${missing}; it has no prices`, 'PX1328', 'document') }
    }
    if ('broken' in source) return { invalid: this.#fail(path, `${key} of ${shown}: ${source.broken}; it has no prices`, 'PX1329', 'document') }
    return source
  }

  #openApi({ configMapRef, url, refreshInterval, backendRef, response, ...settings }: McpOpenApi, path: readonly string[]): ResolvedMcpOpenApi {
    if (response !== undefined) this.#checkExpression(response, [...path, 'response'], 'McpOpenApi.response')
    const backend = backendRef === undefined ? {} : { backend: this.#backend(backendRef, [...path, 'backendRef']) }
    const service = backend.backend !== undefined && backend.backend.invalid === undefined ? this.targets.at(-1) : undefined
    const source =
      url === undefined
        ? this.#storedDocument(configMapRef ?? { name: '', key: '' }, settings, path)
        : this.#remoteDocument(
            {
              owner: this.#owner,
              path,
              url,
              refreshMs: parseDuration(refreshInterval ?? '') ?? DEFAULT_REFRESH_MS,
              service,
              isService: backendRef !== undefined,
            },
            settings,
            path,
          )
    if ('invalid' in source) return { title: '', version: '', path: '', tools: [], ...backend, ...source }
    for (const problem of source.problems) this.#fail(path, problem, 'PX1326', 'document')
    return { ...source.message, ...(response !== undefined && { response }), ...backend }
  }

  #storedDocument({ name, key }: { readonly name: string; readonly key: string }, settings: DocumentSettings, path: readonly string[]): UsableDocument {
    const map = this.#context.snapshot.get('ConfigMap', this.#namespace, name)
    const shown = `ConfigMap ${this.#namespace}/${name}`
    const source = map && readOpenApi(map, key, settings)
    const at = [...path, 'configMapRef']
    const missing = map === undefined ? `${shown} not found` : `${shown} has no ${key}`
    if (source === undefined) return { invalid: this.#fail(at, `${missing}; the target has no tools`, 'PX1324', 'document') }
    if ('broken' in source) return { invalid: this.#fail(at, `${key} of ${shown}: ${source.broken}; the target has no tools`, 'PX1325', 'document') }
    return source
  }

  /** The operator fetches the document; the data plane receives the tools. */
  #remoteDocument(reference: Omit<DocumentReference, 'id'>, settings: DocumentSettings, path: readonly string[]): UsableDocument {
    const { url } = reference
    const at = [...path, 'url']
    const problem = findUrlProblem(url)
    if (problem !== undefined) return { invalid: this.#fail(at, `${problem}; the target has no tools`, 'PX1335', 'document') }
    const id = documentId(reference)
    this.documents.push({ id, ...reference })
    const { documents, documentErrors } = this.#context.options
    const document = documents.get(id)
    const error = documentErrors.get(id)
    if (document === undefined) {
      const invalid = `the document of ${url} has not been fetched yet; the target has no tools`
      // The config contains nothing that changes with each attempt.
      this.#fail(at, error === undefined ? invalid : `${invalid}: ${error}`, 'PX1335', 'document')
      return { invalid }
    }
    if (error !== undefined) this.#fail(at, `the document of ${url} cannot be refreshed: ${error}; its last version is used`, 'PX1365', 'document')
    const source = readFetched(document, settings)
    if ('broken' in source) return { invalid: this.#fail(at, `${url}: ${source.broken}; the target has no tools`, 'PX1325', 'document') }
    return source
  }

  /** Without pins, no tool is approved. */
  #toolPins({ configMapRef: { name, key }, action }: McpToolPins, path: readonly string[]): ResolvedMcpToolPins {
    const map = this.#context.snapshot.get('ConfigMap', this.#namespace, name)
    const shown = `ConfigMap ${this.#namespace}/${name}`
    const pins = map?.data !== undefined && Object.hasOwn(map.data, key) ? map.data[key] : undefined
    const problem = pins === undefined ? (map === undefined ? 'not found' : `has no ${key}`) : parsePins(pins)
    if (typeof problem !== 'string') return { action, ...(pins !== undefined && { pins }) }
    const text = pins === undefined ? `${shown} ${problem}` : `${key} of ${shown} ${problem}`
    return { action, invalid: this.#fail([...path, 'configMapRef'], `${text}; no tool is approved`, 'PX1333', 'document') }
  }

  #secret(name: string, path: readonly string[], owner: string): ResolvedSecret {
    const secret = this.#context.snapshot.get('Secret', this.#namespace, name)
    const missing = `Secret ${this.#namespace}/${name} not found`
    if (owner === 'BackendTLS.mtlsCertificateRef') return this.#material(secret && readCertificate(secret), missing, path)
    const lacking = secret && neededEntries[owner]?.filter((entry) => !hasEntry(secret.data, entry))
    if (lacking?.length) return { invalid: this.#fail(path, `Secret ${this.#namespace}/${name} has no ${lacking.join(', ')}`, 'PX1304') }
    const material = secret && readOpaque(secret)
    const signing = signingOwners.has(owner) && material?.message !== undefined ? readSigningKey(material.message.data?.[SIGNING_ENTRY] ?? '') : undefined
    if (typeof signing === 'string') return { invalid: this.#fail(path, `entry key of Secret ${this.#namespace}/${name} ${signing}`, 'PX1356') }
    for (const problem of this.#badCredentials(material?.message, owner)) this.#fail(path, `Secret ${this.#namespace}/${name}: ${problem}; skipped`, 'PX1305')
    return this.#material(material, missing, path)
  }

  #secretKey({ name, key }: { readonly name: string; readonly key: string }, path: readonly string[]): ResolvedSecretKey {
    const secret = this.#context.snapshot.get('Secret', this.#namespace, name)
    if (secret === undefined) return { invalid: this.#fail(path, `Secret ${this.#namespace}/${name} not found`, 'PX1303') }
    if (!Object.hasOwn(secret.data ?? {}, key)) return { invalid: this.#fail(path, `Secret ${this.#namespace}/${name} has no ${key}`, 'PX1304') }
    const resolved = this.#material(readOpaque(secret), '', path)
    return resolved.secret === undefined ? resolved : { secret: resolved.secret, key }
  }

  /** Entries of a Secret that the data plane will skip. */
  #badCredentials(message: SecretMessage | undefined, owner: string): string[] {
    if (message === undefined) return []
    if (owner === 'JWTSign.secretRef' || owner === 'KeySetResponse.secretRef') return badPublishedKeys(message)
    if (owner === 'BasicAuthentication.secretRef') return badLines(message.data?.['.htaccess']?.split(/\r?\n/) ?? [])
    return owner === 'APIKeyAuthentication.secretRef' ? badApiKeys(message) : []
  }

  /** Only API keys are selected. */
  #selectSecrets(labels: Record<string, string>, path: readonly string[]): ResolvedSecrets {
    const secrets = this.#context.snapshot.inNamespace('Secret', this.#namespace).filter((secret) => matchesLabels(labels, secret.metadata.labels ?? {}))
    const messages = secrets.flatMap((secret) => readOpaque(secret).message ?? [])
    this.secrets.push(...messages)
    if (messages.length === 0) this.#fail(path, `no Secret in namespace ${this.#namespace} has the labels ${JSON.stringify(labels)}`, 'PX1306')
    for (const message of messages)
      for (const problem of badApiKeys(message)) this.#fail(path, `Secret ${message.key.replace('opaque/', '')}: ${problem}; skipped`, 'PX1305')
    return { secrets: messages.map((message) => message.key) }
  }

  #keySet(remote: RemoteKeySet, path: readonly string[], owner: string): ResolvedKeySet {
    const ref = this.#backend(remote.backendRef, [...path, 'backendRef'])
    // The operator fetches it; the data plane calls the identity provider for its metadata, never for keys.
    const isCalled = owner === 'MCPAuthentication.jwks'
    const backend = ref.invalid === undefined ? (isCalled ? this.targets.at(-1) : this.targets.pop()) : undefined
    const from = isCalled ? { from: ref } : {}
    if (!backend) return { invalid: 'the backend of the key set does not resolve' }
    const [namespace = '', name = ''] = backend.key.split('/')
    if (backend.kind === 'ProxyBackend' && !this.#context.snapshot.get('ProxyBackend', namespace, name)?.spec.static)
      return { invalid: this.#fail([...path, 'backendRef'], `ProxyBackend ${backend.key} has no fixed host; give it spec.static, or name a Service`, 'PX1309') }
    const id = keySetId(ref, remote.jwksPath)
    this.keySets.push({ id, backend, path: remote.jwksPath, cacheMs: parseDuration(remote.cacheDuration ?? '') ?? DEFAULT_CACHE_MS })
    const { keySets, keySetErrors } = this.#context.options
    const inline = keySets.get(id)
    const url = `${this.#placeOf(backend)}${remote.jwksPath.startsWith('/') ? '' : '/'}${remote.jwksPath}`
    const error = keySetErrors.get(id)
    if (inline === undefined) {
      const invalid = `keyset for "${url}" isn't available: it has not been fetched yet`
      // The config contains nothing that changes with each attempt.
      this.#fail(path, error === undefined ? invalid : `${invalid}: ${error}`, 'PX1307')
      return { invalid, ...from }
    }
    if (error !== undefined) this.#fail(path, `key set ${url} cannot be refreshed: ${error}; its last version is used`, 'PX1366')
    this.#checkKeySet(inline, path, `key set ${url} `, 'reference')
    return { inline, ...from }
  }

  /** Keys that are ignored do not make a set, or the object that has it, invalid. */
  #checkKeySet(text: string, path: readonly string[], name: string, kind: BodyError['kind']): void {
    const found = findKeySetProblem(text)
    if (found?.isUsable === true) this.#fail(path, name + found.problem, 'PX1368', 'document')
    else if (found !== undefined) this.#fail(path, name + found.problem, 'PX1308', kind)
  }

  /** The host of a backend; of another namespace its name only, because a grant to use a backend shows nobody its address. */
  #placeOf({ kind, key, port }: BackendTarget): string {
    const [namespace = '', name = ''] = key.split('/')
    const fixed = kind === 'ProxyBackend' ? this.#context.snapshot.get('ProxyBackend', namespace, name)?.spec.static : undefined
    if (fixed === undefined) return `${name}.${namespace}.svc.${this.#context.options.clusterDomain}:${port ?? ''}`
    return namespace === this.#namespace ? `${fixed.host}:${fixed.port}` : `${kind} ${key}: `
  }

  #check(name: string, value: Record<string, unknown>, resolved: Record<string, unknown>, path: readonly string[]): void {
    if (name === 'JWKS' && typeof value['inline'] === 'string') this.#checkKeySet(value['inline'], [...path, 'inline'], '', 'expression')
    if (name === 'BasicAuthentication')
      for (const problem of badLines((value['users'] ?? []) as string[])) this.#fail([...path, 'users'], `${problem}; skipped`, 'PX1305')
    if (name === 'Regex') {
      for (const pattern of (value['matches'] ?? []) as string[]) {
        const error = checkPattern(pattern)
        if (error !== undefined) this.#fail([...path, 'matches'], `pattern "${pattern}" is not a valid RE2 expression: ${error}`, 'PX1310', 'expression')
      }
    }
    if (name === 'AgentRuntime') {
      const runtime = readRuntimeArn(String(value['agentRuntimeRef']))
      if (typeof runtime === 'string') this.#fail([...path, 'agentRuntimeRef'], runtime, 'PX1311')
    }
    if (name === 'Budget') for (const { field, problem } of findBudgetProblems(value)) this.#fail([...path, field], problem, 'PX1327')
    if (name === 'McpTargetSelector') this.#takeCommand(resolved, path)
    // Its problems depend on what each Gateway permits.
    if (name === 'PluginSource') this.images.push(...takePluginImage(this.#context, value, resolved, path, this.#owner))
    if (name === 'PluginSource' && value['file'] !== undefined) {
      Reflect.deleteProperty(resolved, 'file')
      const text = 'a plugin in a file is for config files of the data plane; put the module into a ConfigMap for configMapRef (proxyctl plugin build)'
      resolved['configMapRef'] = { invalid: this.#fail([...path, 'file'], text, 'PX1334'), owner: this.#owner }
    }
    if (name === 'BackendTLS') this.#addServerAuthority(value, resolved)
  }

  /** Whether its image is permitted depends on each Gateway. */
  #takeCommand(target: Record<string, unknown>, path: readonly string[]): void {
    const server = takeCommand(target, this.#owner, path, this.#context.options.runsServers)
    if (typeof server === 'string') this.#fail([...path, 'command'], server, 'PX1345', 'document')
    else if (server !== undefined) {
      this.servers.push(server)
      this.targets.push({ kind: 'Service', key: `${this.#namespace}/${server.name}`, port: SERVER_PORT })
    }
  }

  /** Part 2: a ca.cert in the client certificate's Secret verifies the server, unless caCertificateRefs is given. */
  #addServerAuthority(value: Record<string, unknown>, resolved: Record<string, unknown>): void {
    const [ref] = (value['mtlsCertificateRef'] ?? []) as { name: string }[]
    const own = (value['caCertificateRefs'] ?? []) as unknown[]
    const secret = ref && this.#context.snapshot.get('Secret', this.#namespace, ref.name)
    if (!secret || own.length > 0 || secret.data?.['ca.cert'] === undefined) return
    resolved['caCertificateRefs'] = [this.#material(readSecretAuthority(secret, 'ca.cert'), '', ['mtlsCertificateRef'])]
  }
}
