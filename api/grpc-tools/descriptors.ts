import { createFileRegistry, fromBinary, type DescFile, type FileRegistry } from '@bufbuild/protobuf'
import {
  file_google_protobuf_any,
  file_google_protobuf_descriptor,
  file_google_protobuf_duration,
  file_google_protobuf_empty,
  file_google_protobuf_field_mask,
  file_google_protobuf_struct,
  file_google_protobuf_timestamp,
  file_google_protobuf_wrappers,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
  type FileDescriptorProto,
} from '@bufbuild/protobuf/wkt'
import { completeFiles } from './complete.ts'

/** Largest descriptor set, bytes. A ConfigMap has at most 1 MiB. */
const MAX_DESCRIPTOR_BYTES = 1024 * 1024
/** Most files of a service with all that they import. */
export const MAX_FILES = 1000
/** Files that import each other this deep. */
const MAX_IMPORT_DEPTH = 64

/** Descriptors that cannot be used. The message names the problem. */
export class DescriptorError extends Error {}

/** Files of the Protobuf runtime, for descriptor sets that lack them. */
const wellKnown = new Map<string, DescFile>(
  [
    file_google_protobuf_any,
    file_google_protobuf_descriptor,
    file_google_protobuf_duration,
    file_google_protobuf_empty,
    file_google_protobuf_field_mask,
    file_google_protobuf_struct,
    file_google_protobuf_timestamp,
    file_google_protobuf_wrappers,
  ].map((file) => [`${file.name}.proto`, file]),
)

/** Whether a file needs no descriptor of its own. */
export const isWellKnown = (name: string): boolean => wellKnown.has(name)

/** Decodes a FileDescriptorSet, as `protoc --descriptor_set_out` and `buf build` write it. Throws a DescriptorError. */
export function readDescriptorSet(bytes: Uint8Array): FileDescriptorProto[] {
  if (bytes.length > MAX_DESCRIPTOR_BYTES) throw new DescriptorError(`it has ${bytes.length} bytes, at most ${MAX_DESCRIPTOR_BYTES} are supported`)
  const { file } = decode(() => fromBinary(FileDescriptorSetSchema, bytes))
  if (file.length === 0) throw new DescriptorError('it has no files; write it with protoc --include_imports --descriptor_set_out')
  return file
}

/** Decodes one file. Throws a DescriptorError. */
export const readDescriptor = (bytes: Uint8Array): FileDescriptorProto => decode(() => fromBinary(FileDescriptorProtoSchema, bytes))

function decode<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw new DescriptorError('it is no descriptor set of Protobuf', { cause: error })
  }
}

/** Links files to a registry. Throws a DescriptorError, for example if an imported file is missing. */
export function linkFiles(files: readonly FileDescriptorProto[]): FileRegistry {
  if (files.length > MAX_FILES) throw new DescriptorError(`it has ${files.length} files, at most ${MAX_FILES} are supported`)
  const byName = new Map(files.map((file) => [file.name, file]))
  completeFiles([...byName.values()])
  const sorted: FileDescriptorProto[] = []
  const visited = new Map<string, 'open' | 'done'>()
  const visit = (file: FileDescriptorProto, depth: number): void => {
    if (visited.get(file.name) === 'done') return
    if (visited.has(file.name) || depth > MAX_IMPORT_DEPTH) throw new DescriptorError(`the imports of ${quote(file.name)} lead back to it, or are too deep`)
    visited.set(file.name, 'open')
    for (const name of file.dependency) {
      const imported = byName.get(name)
      if (imported !== undefined) visit(imported, depth + 1)
      else if (!wellKnown.has(name)) throw new DescriptorError(`${quote(file.name)} imports ${quote(name)}, which is missing; use --include_imports`)
    }
    visited.set(file.name, 'done')
    sorted.push(file)
  }
  for (const file of byName.values()) visit(file, 0)
  try {
    const linked = new Map<string, DescFile>(wellKnown)
    const registries = sorted.map((file) => {
      const registry = createFileRegistry(file, (name) => linked.get(name))
      for (const one of registry.files) if (`${one.name}.proto` === file.name) linked.set(file.name, one)
      return registry
    })
    return createFileRegistry(...registries)
  } catch (error) {
    throw new DescriptorError(`its files cannot be linked: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
  }
}

const quote = (name: string): string => JSON.stringify(name.length > 100 ? `${name.slice(0, 100)}...` : name)
