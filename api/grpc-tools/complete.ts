import type { DescriptorProto, FieldDescriptorProto, FileDescriptorProto } from '@bufbuild/protobuf/wkt'

/** Calls of `onField` and `onMessage` for a message and those in it. `scope` is the full name of the message. */
function walk(message: DescriptorProto, scope: string, onMessage: (name: string) => void, onField: (field: FieldDescriptorProto, scope: string) => void): void {
  onMessage(scope)
  for (const { name } of message.enumType) onMessage(`${scope}.${name}`)
  for (const field of [...message.field, ...message.extension]) onField(field, scope)
  for (const nested of message.nestedType) walk(nested, `${scope}.${nested.name}`, onMessage, onField)
}

/**
 * Adds what protoc always writes and other programs, such as protobuf.js, leave out: names in JSON, absolute names of types, and the imports that these need.
 * Relative names are looked up from the innermost scope outwards (descriptor.proto).
 */
export function completeFiles(files: readonly FileDescriptorProto[]): void {
  const fileOf = new Map<string, string>()
  for (const file of files) {
    const scope = file.package === '' ? '' : `.${file.package}`
    for (const { name } of file.enumType) fileOf.set(`${scope}.${name}`, file.name)
    for (const message of file.messageType) walk(message, `${scope}.${message.name}`, (name) => void fileOf.set(name, file.name), ignore)
  }
  for (const file of files) {
    const scope = file.package === '' ? '' : `.${file.package}`
    const resolve = (name: string, from: string): string => {
      const found = name === '' || name.startsWith('.') ? name : findFrom(from, name, fileOf)
      const owner = fileOf.get(found)
      if (owner !== undefined && owner !== file.name && !file.dependency.includes(owner)) file.dependency.push(owner)
      return found
    }
    const complete = (field: FieldDescriptorProto, from: string): void => {
      field.typeName = resolve(field.typeName, from)
      field.extendee = resolve(field.extendee, from)
      if (field.jsonName === '') field.jsonName = field.name.replaceAll(/_+([a-z0-9]?)/g, (_, letter: string) => letter.toUpperCase())
    }
    for (const message of file.messageType) walk(message, `${scope}.${message.name}`, ignore, complete)
    for (const field of file.extension) complete(field, scope)
    for (const { method } of file.service)
      for (const one of method) {
        one.inputType = resolve(one.inputType, scope)
        one.outputType = resolve(one.outputType, scope)
      }
  }
}

const ignore = (): void => {}

function findFrom(scope: string, name: string, known: ReadonlyMap<string, unknown>): string {
  for (let at = scope; ; at = at.slice(0, at.lastIndexOf('.'))) {
    if (known.has(`${at}.${name}`) || at === '') return `${at}.${name}`
  }
}
