export { compileGrpcTools, isOffered, type GrpcSelection, type GrpcTool } from './compile.ts'
export { isBareValue } from './schema.ts'
export { DescriptorError, isWellKnown, linkFiles, MAX_FILES, readDescriptor, readDescriptorSet } from './descriptors.ts'
