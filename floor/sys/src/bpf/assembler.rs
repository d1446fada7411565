//! Instructions of BPF, and jumps by label.

use crate::Error;

/// A register: `R0` holds results, `R1` to `R5` arguments (lost in calls), `R6` to `R9` stay, `R10` is the stack's end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Register {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    R10,
}

/// How much is read or written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Size {
    /// 8 bits.
    Byte,
    /// 16 bits.
    Half,
    /// 32 bits.
    Word,
    /// 64 bits.
    Long,
}

impl Size {
    const fn bits(self) -> u8 {
        match self {
            Size::Word => 0x00,
            Size::Half => 0x08,
            Size::Byte => 0x10,
            Size::Long => 0x18,
        }
    }
}

/// An operation on 64 bits: destination, operation, source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Sum.
    Add,
    /// Difference.
    Subtract,
    /// Quotient, rounded down; by zero: zero.
    Divide,
    /// Bitwise or.
    Or,
    /// Bitwise and.
    And,
    /// To the left.
    ShiftLeft,
    /// To the right, without sign.
    ShiftRight,
    /// The source alone.
    Move,
}

impl Operation {
    const fn bits(self) -> u8 {
        match self {
            Operation::Add => 0x00,
            Operation::Subtract => 0x10,
            Operation::Divide => 0x30,
            Operation::Or => 0x40,
            Operation::And => 0x50,
            Operation::ShiftLeft => 0x60,
            Operation::ShiftRight => 0x70,
            Operation::Move => 0xb0,
        }
    }
}

/// When a jump is taken; of values without sign where nothing else is said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Condition {
    /// =
    Equal,
    /// ≠
    NotEqual,
    /// >
    Above,
    /// <
    Below,
    /// >, with sign.
    Greater,
}

impl Condition {
    const fn bits(self) -> u8 {
        match self {
            Condition::Equal => 0x10,
            Condition::Above => 0x20,
            Condition::NotEqual => 0x50,
            Condition::Greater => 0x60,
            Condition::Below => 0xa0,
        }
    }
}

/// A place to jump to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Label(usize);

/// One instruction of 8 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    immediate: i32,
}

impl Instruction {
    /// As the kernel reads it.
    #[must_use]
    pub fn bytes(self) -> [u8; 8] {
        let mut bytes = [0; 8];
        bytes[0] = self.code;
        bytes[1] = self.registers;
        bytes[2..4].copy_from_slice(&self.offset.to_ne_bytes());
        bytes[4..].copy_from_slice(&self.immediate.to_ne_bytes());
        bytes
    }
}

/// A program that is being written.
#[derive(Debug, Default)]
pub struct Assembler {
    code: Vec<Instruction>,
    labels: Vec<Option<usize>>,
    jumps: Vec<(usize, Label)>,
}

const IMMEDIATE: u8 = 0x00;
const REGISTER: u8 = 0x08;
const ALU64: u8 = 0x07;
const ALU32: u8 = 0x04;
const JUMP: u8 = 0x05;
const JUMP32: u8 = 0x06;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
/// `BPF_ATOMIC` on memory of 64 bits, and its operations.
const ATOMIC: u8 = 0xdb;
const ATOMIC_ADD: i32 = 0x00;
const COMPARE_EXCHANGE: i32 = 0xf1;
/// A 64-bit constant takes two instructions.
const LONG_IMMEDIATE: u8 = 0x18;
const OF_MAP: u8 = 1;

impl Assembler {
    fn push(&mut self, code: u8, to: Register, from: u8, offset: i16, immediate: i32) {
        self.code.push(Instruction { code, registers: to as u8 | from << 4, offset, immediate });
    }

    /// `to` = a constant, sign-extended.
    pub fn set(&mut self, to: Register, value: i32) {
        self.with(to, Operation::Move, value);
    }

    /// `to` = a constant of 64 bits.
    pub fn set_long(&mut self, to: Register, value: u64) {
        self.push(LONG_IMMEDIATE, to, 0, 0, value as i32);
        self.push(0, Register::R0, 0, 0, (value >> 32) as i32);
    }

    /// `to` = a map, by its descriptor.
    pub fn set_map(&mut self, to: Register, map: &super::Map) {
        self.push(LONG_IMMEDIATE, to, OF_MAP, 0, map.number());
        self.push(0, Register::R0, 0, 0, 0);
    }

    /// `to` = `to` OPERATION a constant.
    pub fn with(&mut self, to: Register, operation: Operation, value: i32) {
        self.push(ALU64 | IMMEDIATE | operation.bits(), to, 0, 0, value);
    }

    /// `to` = `to` OPERATION `from`.
    pub fn by(&mut self, to: Register, operation: Operation, from: Register) {
        self.push(ALU64 | REGISTER | operation.bits(), to, from as u8, 0, 0);
    }

    /// The same on 32 bits; the upper ones become zero.
    pub fn by_words(&mut self, to: Register, operation: Operation, from: Register) {
        self.push(ALU32 | REGISTER | operation.bits(), to, from as u8, 0, 0);
    }

    /// `to` = what lies at `from` + offset.
    pub fn load(&mut self, size: Size, to: Register, from: Register, offset: i16) {
        self.push(0x61 | size.bits(), to, from as u8, offset, 0);
    }

    /// What lies at `to` + offset = `from`.
    pub fn store(&mut self, size: Size, to: Register, offset: i16, from: Register) {
        self.push(0x63 | size.bits(), to, from as u8, offset, 0);
    }

    /// Adds `from` to the 64 bits at `to` + offset, in one step.
    pub fn add_at(&mut self, to: Register, offset: i16, from: Register) {
        self.push(ATOMIC, to, from as u8, offset, ATOMIC_ADD);
    }

    /// Where the 64 bits at `to` + offset are those of `R0`, they become `from`; `R0` = what they were.
    pub fn exchange_at(&mut self, to: Register, offset: i16, from: Register) {
        self.push(ATOMIC, to, from as u8, offset, COMPARE_EXCHANGE);
    }

    /// A helper function of the kernel, by its number.
    pub fn call(&mut self, helper: i32) {
        self.push(CALL, Register::R0, 0, 0, helper);
    }

    /// Ends with `R0`.
    pub fn exit(&mut self) {
        self.push(EXIT, Register::R0, 0, 0, 0);
    }

    /// A place that is not known yet.
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// The label is here.
    pub fn place(&mut self, label: Label) {
        self.labels[label.0] = Some(self.code.len());
    }

    fn jump_to(&mut self, code: u8, left: Register, right: u8, immediate: i32, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.push(code, left, right, 0, immediate);
    }

    /// Goes on at the label.
    pub fn jump(&mut self, label: Label) {
        self.jump_to(JUMP, Register::R0, 0, 0, label);
    }

    /// Goes on at the label where `left` CONDITION a constant.
    pub fn jump_if(&mut self, left: Register, condition: Condition, value: i32, label: Label) {
        self.jump_to(JUMP | condition.bits(), left, 0, value, label);
    }

    /// Goes on at the label where `left` CONDITION `right`.
    pub fn jump_if_by(&mut self, left: Register, condition: Condition, right: Register, label: Label) {
        self.jump_to(JUMP | REGISTER | condition.bits(), left, right as u8, 0, label);
    }

    /// Goes on at the label where the lower 32 bits of `left` CONDITION a constant.
    pub fn jump_if_word(&mut self, left: Register, condition: Condition, value: i32, label: Label) {
        self.jump_to(JUMP32 | condition.bits(), left, 0, value, label);
    }

    /// The program, its jumps filled in.
    ///
    /// # Errors
    /// Where a label has no place, or a jump is too far: faults of whoever wrote the program.
    pub fn finish(mut self) -> Result<Vec<Instruction>, Error> {
        let fault = |why: &str| Error::bad_input("a BPF program", why.to_owned(), "report this");
        for (at, label) in self.jumps {
            let target = self.labels[label.0].ok_or_else(|| fault("a label has no place"))?;
            let distance = target as i64 - at as i64 - 1;
            self.code[at].offset = i16::try_from(distance).map_err(|_| fault("a jump is too far"))?;
        }
        Ok(self.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Register::{R0, R1, R2, R7, R10};

    fn bytes(write: impl FnOnce(&mut Assembler)) -> Vec<u8> {
        let mut code = Assembler::default();
        write(&mut code);
        code.finish().expect("complete").iter().flat_map(|one| one.bytes()).collect()
    }

    /// Against the encodings of the kernel's documentation (little endian).
    #[test]
    #[cfg(target_endian = "little")]
    fn instructions_are_the_kernels() {
        assert_eq!(bytes(|code| code.set(R1, -2)), [0xb7, 1, 0, 0, 0xfe, 0xff, 0xff, 0xff]);
        assert_eq!(bytes(|code| code.by(R2, Operation::Add, R10)), [0x0f, 0xa2, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes(|code| code.by_words(R2, Operation::Move, R2)), [0xbc, 0x22, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes(|code| code.load(Size::Half, R1, R7, 12)), [0x69, 0x71, 12, 0, 0, 0, 0, 0]);
        assert_eq!(bytes(|code| code.store(Size::Word, R10, -4, R1)), [0x63, 0x1a, 0xfc, 0xff, 0, 0, 0, 0]);
        assert_eq!(bytes(|code| code.load(Size::Byte, R1, R7, 1)), [0x71, 0x71, 1, 0, 0, 0, 0, 0]);
        assert_eq!(bytes(|code| code.load(Size::Long, R1, R7, 8)), [0x79, 0x71, 8, 0, 0, 0, 0, 0]);
        assert_eq!(bytes(|code| code.add_at(R7, 8, R1)), [0xdb, 0x17, 8, 0, 0, 0, 0, 0]);
        assert_eq!(bytes(|code| code.exchange_at(R7, 0, R1)), [0xdb, 0x17, 0, 0, 0xf1, 0, 0, 0]);
        assert_eq!(bytes(|code| code.call(51)), [0x85, 0, 0, 0, 51, 0, 0, 0]);
        assert_eq!(
            bytes(|code| code.set_long(R2, 0x0807_0605_0403_0201)),
            [0x18, 2, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0, 5, 6, 7, 8]
        );
    }

    #[test]
    fn jumps_count_from_the_next_instruction_both_ways() {
        let code = {
            let mut code = Assembler::default();
            let (back, on) = (code.label(), code.label());
            code.place(back);
            code.jump_if(R0, Condition::Equal, 3, on);
            code.jump(back);
            code.place(on);
            code.exit();
            code.finish().expect("complete")
        };
        assert_eq!((code[0].offset, code[1].offset), (1, -2));
        let mut open = Assembler::default();
        let label = open.label();
        open.jump(label);
        assert!(open.finish().is_err());
    }
}
