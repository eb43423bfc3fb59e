import type { DescField, DescFile, DescMessage, DescMethod } from '@bufbuild/protobuf'

/** Numbers of the fields of descriptors that lead to a declaration (descriptor.proto, SourceCodeInfo.Location.path). */
const FILE_MESSAGE = 4
const FILE_SERVICE = 6
const MESSAGE_NESTED = 3
const MESSAGE_FIELD = 2
const SERVICE_METHOD = 2

const known = new WeakMap<DescFile, ReadonlyMap<string, string>>()

/** The comment before a method or field; undefined if the descriptors have none (protoc: --include_source_info). */
export function commentOf(desc: DescMethod | DescField): string | undefined {
  const path = desc.kind === 'rpc' ? pathOfMethod(desc) : [...pathOfMessage(desc.parent), MESSAGE_FIELD, desc.parent.fields.indexOf(desc)]
  const { file } = desc.parent
  let comments = known.get(file)
  if (comments === undefined) known.set(file, (comments = readComments(file)))
  return comments.get(path.join('.'))
}

function pathOfMethod({ parent, name }: DescMethod): number[] {
  const service = parent.file.services.indexOf(parent)
  return [FILE_SERVICE, service, SERVICE_METHOD, parent.methods.findIndex((method) => method.name === name)]
}

function pathOfMessage(message: DescMessage): number[] {
  const { parent, file } = message
  return parent === undefined
    ? [FILE_MESSAGE, file.proto.messageType.indexOf(message.proto)]
    : [...pathOfMessage(parent), MESSAGE_NESTED, parent.proto.nestedType.indexOf(message.proto)]
}

function readComments({ proto }: DescFile): Map<string, string> {
  const comments = new Map<string, string>()
  for (const { path, leadingComments } of proto.sourceCodeInfo?.location ?? []) {
    const text = leadingComments.replaceAll(/^ +| +$/gm, '').trim()
    if (text !== '') comments.set(path.join('.'), text)
  }
  return comments
}
