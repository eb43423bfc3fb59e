import { hash } from 'node:crypto'
import { create, toBinary } from '@bufbuild/protobuf'
import type { MessageKind } from '#api/config/message-kinds.ts'
import { typeUrlOf, wireNameOf } from '#api/config/wire.ts'
import { ADDRESS_TYPE } from '#api/names.ts'
import { AddressSchema, ResourceSchema } from '#gen/proto/resource_pb.js'

/** One message to serve; `operator/translate` makes them. */
export interface ServedMessage {
  readonly kind: MessageKind
  readonly key: string
  readonly message: object
}

/** A message as it travels. */
export interface Entry {
  /** `<kind>/<key>`. */
  readonly name: string
  readonly typeUrl: string
  /** 16 hex digits of the SHA-256 of the message; equal on every replica. */
  readonly version: string
  /** Encoded Resource or Address. */
  readonly bytes: Uint8Array
}

export type Encode = (message: ServedMessage, previous: Entry | undefined) => Entry

const sha256 = (text: string): string => hash('sha256', text)

/**
 * Makes the function that turns messages into entries. A message object seen before is not looked at again; a new object
 * with the content of the previous entry of that name gives that very entry, so that entries compare by identity.
 */
export function createEncoder(digest: (text: string) => string = sha256): Encode {
  const cache = new WeakMap<object, Entry>()
  return ({ kind, key, message }, previous) => {
    const cached = cache.get(message)
    const name = wireNameOf(kind, key)
    if (cached?.name === name) return cached
    const json = JSON.stringify(message)
    const version = digest(`${name}\n${json}`).slice(0, 16)
    const entry = previous?.name === name && previous.version === version ? previous : encodeEntry(name, version, kind, key, json)
    cache.set(message, entry)
    return entry
  }
}

function encodeEntry(name: string, version: string, kind: MessageKind, key: string, json: string): Entry {
  const typeUrl = typeUrlOf(kind)
  const bytes =
    typeUrl === ADDRESS_TYPE
      ? toBinary(AddressSchema, create(AddressSchema, { key, kind, json }))
      : toBinary(ResourceSchema, create(ResourceSchema, { key, kind, json }))
  return { name, typeUrl, version, bytes }
}
