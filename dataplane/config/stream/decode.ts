import { fromBinary } from '@bufbuild/protobuf'
import { messageKinds } from '#api/config/definitions.ts'
import { parseWireName, typeUrlOf } from '#api/config/wire.ts'
import { ADDRESS_TYPE } from '#api/names.ts'
import type { Resource } from '#gen/proto/envoy/service/discovery/v3/discovery_pb.js'
import { AddressSchema, ResourceSchema } from '#gen/proto/resource_pb.js'
import type { ConfigMessage } from '../store.ts'
import { formatProblem, validate } from '../validate.ts'

/** A resource that is refused; `key` is its name, `<kind>/<key>`. The list of them is the text of a nack (operator.md §6.4). */
export interface RefusedResource {
  readonly key: string
  readonly error: string
}

/** A further check of a message that fits the schema; gives what is wrong with it. */
export type CheckMessage = (message: ConfigMessage) => string | undefined

/** Reads one resource of the stream; never throws. */
export function decodeResource(
  resource: Resource,
  typeUrl: string,
  check: CheckMessage | undefined,
): { readonly message: ConfigMessage } | { readonly refused: RefusedResource } {
  try {
    const message = readMessage(resource, typeUrl)
    const error = check?.(message)
    return error === undefined ? { message } : { refused: { key: resource.name, error } }
  } catch (error) {
    return { refused: { key: resource.name, error: error instanceof Error ? error.message : String(error) } }
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
  if (problems.length > 0) throw new Error(problems.map(formatProblem).join('; '))
  const config = { kind: id.kind, message } as ConfigMessage
  if (config.message.key !== id.key) throw new Error(`key: ${config.message.key} does not equal the resource's key`)
  return config
}
