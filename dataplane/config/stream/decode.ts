import { withoutCodes } from '#api/messages/code.ts'
import { fromBinary } from '@bufbuild/protobuf'
import { messageKinds } from '#api/config/message-kinds.ts'
import { parseWireName, typeUrlOf } from '#api/config/wire.ts'
import { ADDRESS_TYPE } from '#api/names.ts'
import type { Resource } from '#gen/proto/envoy/service/discovery/v3/discovery_pb.js'
import { AddressSchema, ResourceSchema } from '#gen/proto/resource_pb.js'
import type { ConfigMessage } from '../store.ts'
import { formatProblem, validate } from '../validate.ts'

/** A rejected resource; `key` is its name, `<kind>/<key>`. A nack carries the list of them as JSON (operator.md §6.4). */
export interface RejectedResource {
  readonly key: string
  readonly error: string
}

/** Checks a message that fits the schema; returns what is wrong with it, or undefined. */
export type CheckMessage = (message: ConfigMessage) => string | undefined

/** Decodes and validates one resource of the stream. Never throws. */
export function decodeResource(
  resource: Resource,
  typeUrl: string,
  check: CheckMessage | undefined,
): { readonly message: ConfigMessage } | { readonly rejected: RejectedResource } {
  try {
    const message = readMessage(resource, typeUrl)
    const error = check?.(message)
    return error === undefined ? { message } : { rejected: { key: resource.name, error } }
  } catch (error) {
    return { rejected: { key: resource.name, error: error instanceof Error ? error.message : String(error) } }
  }
}

function readMessage({ name, resource }: Resource, typeUrl: string): ConfigMessage {
  const id = parseWireName(name)
  if (id === undefined) throw new Error(`name: must be <kind>/<key> with a kind of ${Object.keys(messageKinds).join(', ')}`)
  if (typeUrlOf(id.kind) !== typeUrl || resource?.typeUrl !== typeUrl) throw new Error(`type_url: ${id.kind} travels as ${typeUrlOf(id.kind)}`)
  const { key, kind, json } = fromBinary(typeUrl === ADDRESS_TYPE ? AddressSchema : ResourceSchema, resource.value)
  if (kind !== id.kind || key !== id.key) throw new Error(`kind, key: ${kind}/${key} does not equal the resource's name`)
  let message: unknown
  try {
    message = JSON.parse(json)
  } catch {
    // The parser's own text quotes the input, which may be key material.
    throw new Error('json: is not JSON')
  }
  const problems = validate(messageKinds[id.kind], message)
  if (problems.length > 0) throw new Error(withoutCodes(problems.map(formatProblem).join('; ')))
  const config = { kind: id.kind, message } as ConfigMessage
  if (config.message.key !== id.key) throw new Error(`key: ${config.message.key} does not equal the resource's key`)
  // Who may write manifests must not start programs in data planes.
  if (config.kind === 'backend' && config.message.mcp?.targets.some(({ command }) => command !== undefined) === true)
    throw new Error('mcp.targets: command is for config files')
  return config
}
